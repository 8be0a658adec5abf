"""`velodrome doctor`: what it looks for, and what is refused before anything is started."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.running import velodrome, within

from velodrome.cli.doctor import decide
from velodrome.diagnoses.fault import catalogue
from velodrome.model.diagnosis import Diagnosis, Examination, Ruling, Untried


def test_the_list_explains_every_fault_of_the_catalogue() -> None:
    ended = velodrome(None, "doctor", "--list")
    assert ended.returncode == 0, ended.stderr
    for name, fault in catalogue().items():
        assert name in ended.stdout
        assert fault.proof in ended.stdout


def test_the_list_is_read_by_programs_too() -> None:
    ended = velodrome(None, "doctor", "--list", "--only", "nodelay", "--json")
    (listed,) = json.loads(ended.stdout)
    assert listed["id"] == "nodelay"
    assert listed["proven"] == catalogue()["nodelay"].proof
    assert listed["met_in"]


def test_the_list_can_be_narrowed() -> None:
    ended = velodrome(None, "doctor", "--list", "--skip", "nodelay")
    assert "nodelay" not in ended.stdout
    assert "gc-pause" in ended.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "give an app"),
        (("--recipe", "hello", "--only", "gc-paus"), "gc-pause"),
        (("--recipe", "hello", "--skip", "none"), "velodrome doctor --list"),
        (("--recipe", "hello", "--fail-on", "nodely"), "nodelay"),
        (("--recipe", "hello", "--only", "nodelay", "--fail-on", "gc-pause"), "--only"),
        (("--recipe", "hello", "--skip", "gc-pause", "--fail-on", "gc-pause"), "--skip"),
        (("--recipe", "hello", "--skip", "gc-pause", "--only", "gc-pause"), "no fault"),
        (("--recipe", "hello", "--budget", "soon"), "--budget"),
        (("--recipe", "hello", "--stack", "uvicornn"), "uvicorn"),
        (("--recipe", "hello", "--slo", "p99 is low"), "p99 is low"),
        (("--recipe", "hello", "--html", "/nowhere/doctor.html"), "--html"),
        (("--recipe", "hello", "--junit", "/nowhere/doctor.xml"), "--junit"),
        (("--recipe", "hello", "--out", "/nowhere/doctor.json"), "--out"),
        (("--recipe", "hello", "--stack", "uvicorn", "--threads", "4"), "threads"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    code, written = within(tmp_path, "doctor", *words)
    assert code == 2, written
    assert sentence in written
    assert "Traceback" not in written


def test_a_named_fault_that_cannot_be_told_fails_and_of_any_fault_only_one_that_was_not_tried() -> None:
    unsure = Diagnosis("nodelay", Ruling.CANNOT_TELL, "too noisy")
    found = Examination("shop", "uvicorn", (unsure,), (), (), None, 60.0)
    assert decide(found, ())[0] == decide(found, ("any",))[0] == decide(found, ("gc-pause",))[0] == 0
    assert decide(found, ("gc-pause", "nodelay"))[0] == 4
    ill = replace(found, diagnoses=(replace(unsure, id="gc-pause", ruling=Ruling.CAUSE), unsure))
    assert decide(ill, ("any",))[0] == decide(ill, ("gc-pause", "nodelay"))[0] == 1
    late = replace(found, untried=(Untried("arenas", "no time"),))
    assert decide(late, ("any",))[0] == decide(late, ("arenas",))[0] == 4
    assert decide(late, ("gc-pause",))[0] == 0
