import json
import math

import jsonschema
import pytest
from tests.report.made_up_capacity import TITLE, knee, rate, whole

from velodrome.model.quantity import Interval
from velodrome.model.search import Ending, Knee, RateCapacity
from velodrome.report import schema, searches

FOUND = (
    rate(Ending.CONVERGED, Interval(404, 412, 420)),
    rate(Ending.NEVER, None, "p99 was 300 ms"),
    knee(0.0005),
    knee(0.0),
    whole(),
)


@pytest.mark.parametrize("found", FOUND)
def test_the_document_is_json_without_infinities_and_obeys_its_schema(found: RateCapacity | Knee) -> None:
    document = json.loads(json.dumps(searches.document(found, TITLE), allow_nan=False))
    jsonschema.validate(document, schema.capacity())
    assert math.isclose(document["seconds"], found.seconds)


def test_what_is_shown_beside_the_answer_is_in_the_document() -> None:
    document = searches.document(whole(), TITLE)
    assert [point["share"] for point in document["load"]] == [0.2, 0.5, 0.8, 0.95]
    assert [overload["back_s"] for overload in document["overload"]] == [3.0, None]
    assert document["cold_start_s"] == {"low": 0.58, "mid": 0.62, "high": 0.71}
    assert (document["cold_starts"], document["folder"]) == (6, "runs/my run")
    assert len(document["left_out"]) == 1


def test_a_document_without_what_was_added_is_still_one() -> None:
    document = searches.document(rate(Ending.CONVERGED, Interval(404, 412, 420)), TITLE)
    for added in ("load", "overload", "cold_start_s", "cold_starts", "left_out", "folder"):
        del document[added]
    jsonschema.validate(json.loads(json.dumps(document)), schema.capacity())
