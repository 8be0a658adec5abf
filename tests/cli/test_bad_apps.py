"""Apps that no server can do anything with: one clear sentence, an exit code that says whose fault it is, nothing left.

Each command runs as its user would, and all that it started carries a mark by which it is looked for afterwards.
"""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from tests.run.apps.theirs import SHOP
from tests.waiting import eventually

USAGE, LAB = 2, 3
TWO = ("--stack", "waitress", "--stack", "gunicorn-sync")
SHORT = ("--blocks", "1", "-z", "0.5s", "-c", "4")
MARK = "VELODROME_TEST_MARK"


def ended(where: Path, *words: str) -> tuple[int, str]:
    """Return exit code and all that a command printed, once nothing that it started is left."""
    mark = secrets.token_hex(8)
    command = [
        sys.executable,
        "-m",
        "velodrome",
        *words,
        "--cwd",
        str(SHOP),
        "--env",
        f"{MARK}={mark}",
        "--wait",
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110, cwd=where)
    assert eventually(lambda: not marked(mark), 5.0), marked(mark)
    return ran.returncode, ran.stderr + ran.stdout


def marked(mark: str) -> list[str]:
    """Return the command lines of processes that have it in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it ended meanwhile, or is another user's
            continue
    return found


pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs the environment of processes")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("compare", "raises:app", *TWO), USAGE, "raises.py, line 2, in load_settings"),
        (
            ("capacity", "plain:application", "--stack", "uvicorn"),
            USAGE,
            "wsgi, which uvicorn",
        ),
        (("capacity", "fails:asgi", "--stack", "uvicorn"), USAGE, "--env NAME"),
        (
            ("tune", "plain:application", *TWO, "--request", "GET /nope"),
            USAGE,
            "status 404, not 2xx: «no such",
        ),
    ],
)
def test_it_is_reported_in_a_sentence_and_nothing_is_left(
    tmp_path: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    number, output = ended(tmp_path, *words)
    assert number == code, output
    assert sentence in output
    assert "Traceback (most" not in output.partition("Its last lines")[0]


@pytest.mark.parametrize(
    "words",
    [("compare", "daemonises:application", *TWO), ("capacity", "leaves:app", "--stack", "waitress")],
)
def test_an_app_that_leaves_the_process_is_reported_with_what_to_put_elsewhere(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    number, output = ended(tmp_path, *words, "--env", f"PID_FILE={tmp_path / 'pid'}")
    assert number == USAGE, output
    assert "under if __name__ == '__main__'" in output


@pytest.mark.exhaustive
@pytest.mark.parametrize(("app", "stack"), [("hangs:application", "waitress"), ("hangs:asgi", "uvicorn")])
def test_an_app_that_never_ends_an_answer_is_reported_with_what_to_look_for(
    tmp_path: Path, app: str, stack: str
) -> None:
    number, output = ended(tmp_path, "compare", app, "--stack", stack)
    assert number == LAB, output
    assert "--setup, --env" in output


@pytest.mark.exhaustive
def test_tuning_ends_after_two_stacks_that_wait_for_it_in_vain(tmp_path: Path) -> None:
    three = (*TWO, "--stack", "gunicorn-gevent")
    number, output = ended(tmp_path, "tune", "hangs:application", *three)
    assert number == LAB, output
    assert "--setup, --env" in output


@pytest.mark.exhaustive
@pytest.mark.measured
def test_an_app_that_grows_past_its_limit_is_reported_and_is_no_winner(tmp_path: Path) -> None:
    number, output = ended(
        tmp_path, "compare", "grows:application", "--stack", "waitress", *SHORT, "--memory", "200MB"
    )
    # Without control groups its allocations fail, and so do its requests.
    assert "its memory limit was reached" in output or "requests failed" in output
    assert number == LAB or "cannot tell" in output, output
