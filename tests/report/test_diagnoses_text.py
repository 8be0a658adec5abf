"""An examination as text: causes with what they cost and how they are cured, then what is none, then what is left."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from velodrome.model.diagnosis import Cure, Diagnosis, Evidence, Examination, Ruling, Untried, surest_first
from velodrome.model.errors import OutputError
from velodrome.model.quantity import Interval
from velodrome.report.diagnoses import lines, write

CAUSE = Diagnosis(
    "blocking-call",
    Ruling.CAUSE,
    "it holds up the loop",
    {"rps": Interval(380, 410, 440), "p99_ms": Interval(-3, 1, 5)},
    (
        Evidence("stack", "shop.py:88 in price: requests.get(url)", {"frames": []}),
        Evidence("arms", "4 blocks"),
    ),
    Cure("await it", "shop.py:88", "requests.get(url)", "await asyncio.to_thread(requests.get, url)"),
    "cure",
    9.0,
)
SMALL = Diagnosis("log-cost", Ruling.CAUSE, "it costs", gain=1.2, proof="cure")
NONE = Diagnosis("gc-pause", Ruling.NOT_A_CAUSE, "nothing was collected")
OPEN = Diagnosis("nodelay", Ruling.CANNOT_TELL, "the arms are too noisy")


def examined(*diagnoses: Diagnosis, **more: object) -> Examination:
    untried = (Untried("thread-tokens", "the budget was spent"),)
    screens = (Evidence("slope", "throughput stops at 45/s"),)
    return Examination("shop", "uvicorn", surest_first(diagnoses), untried, screens, 0.06, 61.0)


def test_the_costliest_cause_stands_first_and_what_is_none_last() -> None:
    found = examined(NONE, SMALL, OPEN, CAUSE)
    assert [diagnosis.id for diagnosis in found.diagnoses] == [
        "blocking-call",
        "log-cost",
        "nodelay",
        "gc-pause",
    ]
    text = "\n".join(lines(found))
    assert (
        text.index("blocking-call") < text.index("log-cost") < text.index("nodelay") < text.index("gc-pause")
    )


def test_a_cause_says_its_line_its_cost_and_its_cure() -> None:
    text = "\n".join(lines(examined(CAUSE)))
    for part in ("shop.py:88 in price", "410/s", "[380, 440]", "await asyncio.to_thread(requests.get, url)"):
        assert part in text
    assert "ms of p99" not in text  # its interval reaches across 0


def test_each_line_of_a_cure_stands_on_its_own_with_its_sign() -> None:
    cure = Cure("wait in turn", "shop.py:88", "gather(*calls)", "for call in calls:\n    await call")
    text = lines(examined(replace(CAUSE, cure=cure)))
    changed = [line.strip() for line in text if line.strip()[:2] in {"- ", "+ "}]
    assert changed == ["- gather(*calls)", "+ for call in calls:", "+     await call"]


def test_what_was_not_tried_and_what_is_unexplained_is_reported() -> None:
    text = "\n".join(lines(examined(NONE)))
    assert "thread-tokens: the budget was spent" in text
    assert "6%" in text


def test_the_document_has_the_keys_that_are_promised() -> None:
    document = examined(CAUSE, NONE).document()
    assert document["schema"] == "velodrome/doctor/1"
    first, last = document["diagnoses"]
    assert first["verdict"] == "cause"
    assert first["effect"]["rps"] == [380, 410, 440]
    assert set(first["cure"]) == {"what", "where", "before", "after"}
    assert (last["verdict"], last["cure"], last["proof"]) == ("not-a-cause", None, None)
    assert document["unexplained"] == 0.06
    assert not document["healthy"]


def test_the_document_is_written_to_a_file(tmp_path: Path) -> None:
    write(examined(CAUSE), tmp_path / "doctor.json")
    assert json.loads((tmp_path / "doctor.json").read_text()) == examined(CAUSE).document()
    with pytest.raises(OutputError, match="nowhere"):
        write(examined(CAUSE), tmp_path / "nowhere" / "doctor.json")


def test_terminal_codes_in_what_an_app_wrote_are_made_visible() -> None:
    hostile = Diagnosis(
        "blocking-call", Ruling.CAUSE, "\x1b[2Jgone", evidence=(Evidence("stack", "\x1b]0;x\x07"),)
    )
    assert not any("\x1b" in line for line in lines(examined(hostile)))
