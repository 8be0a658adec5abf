"""An experiment comes to a finding whatever it does, and leaves nothing running."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.run.experiments.kinds import experiment as made
from tests.waiting import wait_until

from velodrome.guest import catalog
from velodrome.model.claim import Experiment, Finding, Setting
from velodrome.run.environments import guest_tree
from velodrome.run.experiments import experiment
from velodrome.run.experiments.experiment import stacks_of
from velodrome.run.experiments.running import run_experiment
from velodrome.run.lab import Lab


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Lab:
    # Its process has to find the kind that these tests bring.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    return Lab(catalog.stacks(), guest_tree.export([]))


def tried(lab: Lab, deadline_s: float = 20.0, **settings: Setting) -> Finding:
    return run_experiment(Experiment("one", "made", settings), lab, replace(made, deadline_s=deadline_s))


def test_it_gets_its_settings_and_the_lab_and_its_facts_come_back(lab: Lab) -> None:
    found = tried(lab, stacks=("uvicorn", "waitress"), times=3)
    assert found.failed == ""
    assert found.facts == {
        "stacks": float(len(lab.stacks)),
        "cpus": ",".join(map(str, lab.cpus)),
        "times": 3,
        "not_a_number": None,
        "names": "uvicorn+waitress",
        "fine": True,
    }
    assert (found.sentence, found.last_lines) == ("It answered.", ("the last line",))


def test_one_that_hangs_is_ended_with_all_it_started_and_that_is_its_finding(lab: Lab) -> None:
    began = time.monotonic()
    found = tried(lab, 2.0, does="hang")
    assert time.monotonic() - began < 12
    assert found.facts == {"timed_out": True}
    assert found.sentence == "It was still running after 2 s, its deadline, and was ended."
    (child,) = [int(line.split()[1]) for line in found.last_lines if line.startswith("child ")]
    wait_until(lambda: not Path(f"/proc/{child}").exists(), 5.0)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_one_that_crashes_is_a_finding_with_the_reason(lab: Lab) -> None:
    found = tried(lab, does="crash")
    assert found.failed == "ZeroDivisionError: by naught"
    assert any("ZeroDivisionError" in line for line in found.last_lines)
    assert found.facts == {}


def test_one_that_refuses_tells_why_and_one_that_vanishes_how(lab: Lab) -> None:
    assert tried(lab, does="refuse").failed == "it cannot be tried here. Try it elsewhere"
    assert tried(lab, does="vanish").failed.startswith("its process ended without a word (exit 7)")


def test_an_unknown_kind_is_a_finding_too(lab: Lab) -> None:
    assert "no experiment is called 'canari'" in run_experiment(Experiment("one", "canari"), lab).failed


def test_the_kinds_that_ship_are_called_like_their_files_and_name_stacks_that_exist() -> None:
    stacks = catalog.stacks()
    for name, kind in experiment.known_kinds().items():
        assert kind.run.__module__ == f"velodrome.run.experiments.{name.replace('-', '_')}"
        assert kind.about
        assert set(stacks_of(kind.defaults)) <= set(stacks)
