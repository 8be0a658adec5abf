"""What programs read of an examination: its JSON obeys the published schema, its JUnit that of JUnit's readers."""

import json
from collections.abc import Callable
from xml.etree import ElementTree as Tree

import jsonschema
import pytest
from tests.report.junit_schema import check
from tests.report.made_up_doctor import hostile, ill, well

from velodrome.model.diagnosis import Examination
from velodrome.report import schema
from velodrome.report.diagnoses import junit_text, lines
from velodrome.report.json import to_json

pytestmark = pytest.mark.unit
EVERY = pytest.mark.parametrize("found", [ill(), well(), hostile()], ids=["ill", "well", "hostile"])


@EVERY
def test_the_document_obeys_its_published_schema(found: Examination) -> None:
    document = json.loads(json.dumps(found.document(), allow_nan=False))
    jsonschema.validate(document, schema.doctor())
    document["diagnoses"][0]["verdict"] = "perhaps"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema.doctor())


def test_the_surest_and_costliest_stand_first() -> None:
    document = ill().document()
    assert [(diagnosis["id"], diagnosis["verdict"]) for diagnosis in document["diagnoses"]] == [
        ("blocking-call", "cause"),
        ("log-cost", "cause"),
        ("gil-convoy", "cannot-tell"),
        ("gc-pause", "not-a-cause"),
        ("nodelay", "not-a-cause"),
    ]


def test_the_document_and_the_text_are_as_they_were_looked_at(golden: Callable[[str, str], None]) -> None:
    golden("doctor.json", to_json(ill().document()))
    golden("doctor.txt", "\n".join([*lines(ill()), "", *lines(well())]) + "\n")


@EVERY
def test_junit_is_as_its_readers_want_it(found: Examination) -> None:
    root = Tree.fromstring(junit_text(found))
    check(root)
    (suite,) = root
    names = [case.get("name") for case in suite.findall("testcase")]
    assert len(names) == len(set(names)) == len(found.diagnoses) + len(found.untried)
    assert int(suite.get("failures", "")) == len(found.causes)


def test_a_cause_fails_with_its_evidence_and_cure_and_what_is_open_is_skipped_with_its_reason(
    golden: Callable[[str, str], None],
) -> None:
    text = junit_text(ill())
    golden("doctor.xml", text)
    cases = {case.get("name"): case for case in Tree.fromstring(text).iter("testcase")}
    failure = cases["blocking-call"].find("failure")
    assert failure is not None
    for part in ("pricing.py:88", "await asyncio.to_thread(price, cart)", "404/s"):
        assert part in str(failure.get("message"))
    for name, reason in (("gil-convoy", "after 8 blocks"), ("thread-tokens", "the budget was spent")):
        skipped = cases[name].find("skipped")
        assert skipped is not None
        assert reason in str(skipped.get("message"))
    assert len(cases["gc-pause"]) == 0


def test_two_places_of_one_fault_are_two_cases() -> None:
    first = ill().causes[0]
    both = Examination("shop", "uvicorn", (first, first), (), (), None, 1.0)
    names = [case.get("name") for case in Tree.fromstring(junit_text(both)).iter("testcase")]
    assert names == ["blocking-call", "blocking-call (2)"]
