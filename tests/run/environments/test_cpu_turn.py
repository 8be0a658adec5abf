"""Servers that are compared do the same CPU work."""

import sys
from pathlib import Path

import pytest

from velodrome.model.errors import CalibrationError
from velodrome.run.environments import environment as cpu_turn
from velodrome.run.environments import guest_tree
from velodrome.run.environments.environment import Environment


def environment(python: Path) -> Environment:
    return Environment(python=python, version="3.11.7", packages={}, locked=True)


def test_an_interpreter_tells_the_nanoseconds_of_a_turn() -> None:
    nanoseconds = cpu_turn.turn_ns(environment(Path(sys.executable)), guest_tree.export())
    assert 1 < float(nanoseconds) < 1000


def test_one_that_cannot_be_asked_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(CalibrationError, match="the speed of "):
        cpu_turn.turn_ns(environment(tmp_path / "no-python"), guest_tree.export())
