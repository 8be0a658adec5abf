"""An interpreter is found by nothing, by version or by path, or the error says what to do."""

import os
import platform
import sys
from pathlib import Path

import pytest

from velodrome.model.errors import InterpreterNotFoundError
from velodrome.run.environments.interpreter import find_interpreter


def test_none_is_the_one_velodrome_runs_on_without_its_environment() -> None:
    found = find_interpreter()
    assert found.version == platform.python_version()
    assert found.minor == sys.version_info[:2]
    assert Path(sys.base_prefix) in found.path.parents


def test_a_path_within_a_virtual_environment_is_led_back_to_its_interpreter() -> None:
    assert find_interpreter(sys.executable).path == find_interpreter().path


def test_a_version_is_looked_for() -> None:
    assert find_interpreter(f"{sys.version_info[0]}.{sys.version_info[1]}").minor == sys.version_info[:2]


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("9.9", "there is none of that version on this machine"),
        ("./no/such/python", "it does not run ([Errno 2] No such file or directory: './no/such/python')"),
        (os.path.realpath("/bin/false"), "it does not run (exit status 1)"),
        (os.path.realpath("/bin/echo"), "it does not behave like a Python interpreter"),
    ],
)
def test_what_is_no_interpreter_is_refused_with_the_reason(wanted: str, reason: str) -> None:
    with pytest.raises(InterpreterNotFoundError) as caught:
        find_interpreter(wanted)
    assert str(caught.value) == (
        f"no interpreter for '{wanted}': {reason}. Give its path, or install it: uv python install 3.x"
    )
