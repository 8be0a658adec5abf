import json
import math

import jsonschema
import pytest
from tests.report.made_up_capacity import TITLE, knee, rate

from velodrome.model.quantity import Interval
from velodrome.model.search import Ending, Knee, RateCapacity
from velodrome.report import schema, searches

FOUND = (
    rate(Ending.CONVERGED, Interval(404, 412, 420)),
    rate(Ending.NEVER, None, "p99 was 300 ms"),
    knee(0.0005),
    knee(0.0),
)


@pytest.mark.parametrize("found", FOUND)
def test_the_document_is_json_without_infinities_and_obeys_its_schema(found: RateCapacity | Knee) -> None:
    document = json.loads(json.dumps(searches.document(found, TITLE), allow_nan=False))
    jsonschema.validate(document, schema.capacity())
    assert math.isclose(document["seconds"], found.seconds)
