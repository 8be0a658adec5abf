"""The command as users call it: exit codes, sentences instead of tracebacks, a quick start."""

import os
import pwd
import subprocess
import sys

import pytest

from velodrome import _native


def velodrome(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "velodrome", *words],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=60,
        env={**os.environ, **variables},
    )


def test_without_arguments_it_says_what_there_is() -> None:
    shown = velodrome()
    assert "load" in shown.stdout + shown.stderr
    assert "stacks" in shown.stdout + shown.stderr


def test_the_version_is_the_crates() -> None:
    assert velodrome("--version").stdout == f"velodrome {_native.VERSION}\n"


def who() -> str:
    """Return our own name: where no option names whom servers run as, root reads that they run as root."""
    return pwd.getpwuid(os.geteuid()).pw_name


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("stacks", "show", "guvicorn"), "no stack is called 'guvicorn'. Nearest:"),
        (("recipes", "show", "helo"), "no recipe is called 'helo'. Nearest: hello"),
        (("run", "frist-lap", "--user", who()), "no study is called 'frist-lap'. Nearest: first-lap"),
        (("run", "first-lap", "--user", who(), "--link", "rtt=160"), "write 160ms, 1.5ms or 1s"),
        (("load", "http://192.0.2.1/"), "--allow-target 192.0.2.1"),
        (("load", "http://127.0.0.1:1/", "-R", "-5"), "above 0"),
        (("load", "http://127.0.0.1:1/", "-c", "0"), "-c 0: give a whole number from 1 to 1000000"),
        (("load", "http://127.0.0.1:1/", "-c", "9" * 20), "give a whole number from 1 to 1000000"),
        (("load", "http://127.0.0.1:1/", "-n", "-3"), "-n -3: give a whole number from 1 to"),
        (("load", "http://127.0.0.1:1/", "-t", "0"), "-t 0: give a whole number from 1 to 1024"),
        (("load", "http://127.0.0.1:1/", "-m", "9" * 20, "--http2"), "give a whole number from 1 to 65535"),
        (
            ("load", "http://127.0.0.1:1/", "--seed", "-1"),
            f"--seed -1: give a whole number from 0 to {2**64 - 1}",
        ),
        (("load", "http://127.0.0.1:1/", "--seed", "9" * 23), f"give a whole number from 0 to {2**64 - 1}"),
        (("load", "http://127.0.0.1:1/", "--expect-status", "70000"), "--expect-status 70000: give a whole"),
        (("load", "http://127.0.0.1:1/", "--idle", "9" * 20), "give a whole number from 0 to 1000000"),
        (
            ("load", "ws://127.0.0.1:1/", "--ws-at-once", "-1"),
            "--ws-at-once -1: give a whole number from 1 to",
        ),
        (("load", "ws://127.0.0.1:1/", "--message", "0"), "--message 0: give a whole number from 1 to"),
        (("load", "grpc://127.0.0.1:1/a.B/C", "--messages", "9" * 20), "give a whole number from 1 to"),
        (("load", "http://127.0.0.1:1/", "-z", "soon"), "'soon' is not a span of time"),
        (("load", "http://127.0.0.1:1/", "-z", "1s", "-n", "5"), "exclude each other"),
        (("load", "http://127.0.0.1:1/", "-H", "nonsense"), "is not a header"),
        (("load", "http://127.0.0.1:1/", "--body", "@/no/such/file"), "cannot read /no/such/file"),
        (("upstream", "--latency", "quick"), "quick"),
        (("upstream", "--errors", "200%"), "not a share"),
        (("upstream", "--stall", "1s"), "write 1s/10s"),
        (("stacks", "show", "uvicorn", "wrokers=3"), "setting of uvicorn"),
        (("stacks", "show", "uvicorn", "workers=abc"), "workers abc: give a whole number from 1 on"),
        (("stacks", "show", "uvicorn", "workers=0"), "workers 0: give a whole number from 1 on"),
        (("stacks", "show", "uvicorn", "loop=trio"), "loop trio: uvicorn has"),
    ],
)
def test_what_makes_no_sense_is_one_sentence_and_exit_code_2(words: tuple[str, ...], sentence: str) -> None:
    ended = velodrome(*words)
    assert ended.returncode == 2, ended
    assert ended.stderr.startswith("velodrome: ")
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    shell = f"{sys.executable} -m velodrome stacks | head -n 1"
    ended = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False, timeout=60)
    assert ended.stderr == ""


def test_the_help_lists_every_command_although_their_parts_lie_beside_them() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "velodrome", "--help"], capture_output=True, text=True, check=False, timeout=60
    )
    assert shown.returncode == 0, shown.stderr
    assert {"load", "run", "judge", "stacks"} <= {
        line.split()[0] for line in shown.stdout.splitlines() if line.split()
    }


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1"])
def test_letters_that_the_locale_lacks_cost_no_result(encoding: str) -> None:
    ended = velodrome("load", "http://127.0.0.1:9/", "-n", "50", "-R", "5000", PYTHONIOENCODING=encoding)
    assert ended.returncode == 1, ended
    assert "refused 50" in ended.stdout
    assert "unexpectedly" not in ended.stderr
