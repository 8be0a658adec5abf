"""What passes through many modules takes as few as it can, and goes down: a race calls nothing above it."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import NoneType
from typing import get_type_hints

import pytest

from velodrome.run.racing.opening import Follower, Preparing

WALKS = Path(__file__).parents[2] / "tools/walks.py"
SOURCE = Path(__file__).parents[2] / "src/velodrome"


@pytest.mark.parametrize("follower", [Preparing, Follower])
def test_who_follows_a_race_is_called_with_words_and_numbers_only(follower: type) -> None:
    """Findings, results and profiles are what a race yields to its caller."""
    events = [value for name, value in vars(follower).items() if not name.startswith("_")]
    given = [hint for event in events for hint in get_type_hints(event).values()]
    assert given
    assert {str(hint) for hint in given} <= {str(hint) for hint in (str, float | None, NoneType)}


@pytest.mark.unit
def test_the_classes_that_are_followed_exist() -> None:
    sources = [path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py")]
    classes = {name for text in sources for name in re.findall(r"^class (\w+)", text, re.MULTILINE)}
    subjects = runpy.run_path(str(WALKS))["SUBJECTS"]
    assert set().union(*subjects.values()) <= classes


SINK = "usecases/race.py -> cli/_shown.py"
"""A use case hands each result to the sink of its events, which is the face's."""


@pytest.mark.measured
@pytest.mark.exhaustive
def test_an_app_goes_from_compare_to_its_verdict_and_climbs_to_the_event_sink_only() -> None:
    ended = subprocess.run(
        [sys.executable, str(WALKS), "compare"], capture_output=True, text=True, timeout=110, check=True
    )
    counted = re.search(r"(\d+) files, (\d+) climbs", ended.stdout)
    assert counted, ended.stdout
    files, climbs = map(int, counted.groups())
    assert files > 20, ended.stdout  # the whole way, up to the reports
    found = [line.strip() for line in ended.stdout.splitlines() if " -> " in line]
    assert len(found) == climbs
    assert set(found) <= {SINK}, ended.stdout
