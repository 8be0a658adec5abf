"""`velodrome compare` takes an app from its name to what to paste, and says at once where that cannot be."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.cli.running import velodrome
from tests.run.apps.theirs import SHOP

from velodrome.model.quantity import rate

PLAIN = ("compare", "plain:application", "--cwd", str(SHOP))
SHORT = ("--stack", "waitress", "--stack", "gunicorn-sync", "--blocks", "1", "-z", "0.5s", "--wait")


def test_an_app_is_ranked_and_what_to_paste_is_reported(tmp_path: Path) -> None:
    words = ("--request", "GET /env", "--env", "SHOP_NAME=s3cret", "-H", "X-Key: h1dden", "--out", "out")
    commands = ("--setup", f"touch {tmp_path}/set-up", "--teardown", f"touch {tmp_path}/torn-down")
    ended = velodrome(tmp_path, *PLAIN, *SHORT, *words, *commands)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "plain:application is the function application, called through wsgi" in ended.stderr
    # Not of the ranking: on a busy machine there is none.
    (answer,) = json.loads((tmp_path / "out" / "verdict.json").read_text())["answers"]
    for standing in answer["standings"]:
        script = standing["stack"] == "waitress"  # which is pasted as one that imports the app
        named = "from plain import application" if script else " plain:application"
        assert named in standing["deploy"]
        assert "# needs in its environment: SHOP_NAME\n" in standing["deploy"]
        assert "--graceful-timeout" not in standing["deploy"]
        assert standing["again"].startswith("velodrome compare plain:application --stack ")
        assert "--header 'X-Key: •••'" in standing["again"]
    assert (tmp_path / "set-up").exists()
    assert (tmp_path / "torn-down").exists()
    stored = (tmp_path / "out" / "results.jsonl").read_text()
    question, *baselines = json.loads(stored.splitlines()[0])["study"]["questions"]
    assert [baseline["baseline"]["layer"] for baseline in baselines] == ["app", "server"]
    closed, shown = question["loads"]
    assert closed["pace"]["kind"] == "closed"
    assert shown["pace"]["kind"] == "open"
    assert shown["pace"]["rate"] == question["look"]["rate"] > 0
    assert question["look"]["answered_rps"].keys() == {"waitress", "gunicorn-sync"}
    views = [view for standing in answer["standings"] for view in standing["latency"]]
    assert {view["load"].partition("-")[0]: view["compares"] for view in views} == {
        "closed": False,
        "open": True,
    }
    assert f"latency is compared at {rate(question['look']['rate'])} for all" in ended.stderr
    written = [path.read_text() for path in (tmp_path / "out").iterdir() if path.is_file()]
    for secret in ("s3cret", "h1dden"):
        assert not any(secret in text for text in (*written, ended.stdout, ended.stderr))
    # What is withheld is known again all the same, and another is another question.
    resumed = velodrome(tmp_path, *PLAIN, *SHORT, *words, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    others = [word.replace("h1dden", "an0ther") for word in words]
    refused = velodrome(tmp_path, *PLAIN, *SHORT, *others, "--resume")
    assert refused.returncode == 2
    assert "the secrets of GET /env are others than they were" in refused.stderr
    assert "an0ther" not in refused.stderr
    assert (tmp_path / "out" / "results.jsonl").read_text() == stored
    trials = [json.loads(line) for line in stored.splitlines()[1:]]
    profiled = [trial for trial in trials if trial["kind"] == "profile"]
    assert [trial["trial"]["question"] for trial in profiled] == ["plain:application~app"]
    assert {
        (trial["kind"], trial["trial"]["contestant"]["stack"]) for trial in trials if trial not in profiled
    } == {
        ("measurement", "waitress"),
        ("measurement", "gunicorn-sync"),
    }
    again = velodrome(tmp_path, "judge", "out")
    assert again.returncode == 0, again.stderr


def test_answers_that_are_not_right_are_reported_at_once_and_nothing_is_measured(tmp_path: Path) -> None:
    ended = velodrome(tmp_path, *PLAIN, *SHORT, "--request", "GET /nope", "--out", "out")
    assert ended.returncode == 2
    assert "it answers GET /nope with status 404, not 2xx: «no such thing»" in ended.stderr
    assert "nothing was measured" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_a_setup_that_fails_ends_it_before_anything(tmp_path: Path) -> None:
    ended = velodrome(tmp_path, *PLAIN, *SHORT, "--setup", "echo no database; false")
    assert ended.returncode == 3
    assert "no database" in ended.stderr


def terminated(where: Path, began: str, *words: str) -> int:
    """Run `velodrome compare` and end it by SIGTERM once a file that matches is there; return its exit code."""
    command = [sys.executable, "-m", "velodrome", "compare", *words, "--teardown", "touch torn-down"]
    (where / "scratch").mkdir()
    env = {**os.environ, "VELODROME_CACHE": str(where / "cache"), "TMPDIR": str(where / "scratch")}
    with subprocess.Popen(command, cwd=where, env=env, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 30
        while not list(where.glob(began)):
            assert process.poll() is None
            assert time.monotonic() < until, f"there is no {began}"
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        return process.wait(30)


def test_the_one_after_runs_when_the_one_before_is_terminated(tmp_path: Path) -> None:
    words = ("plain:application", "--setup", "touch began; sleep 600")
    assert terminated(tmp_path, "began", *words) == 130
    assert (tmp_path / "torn-down").exists()


def test_the_one_after_runs_when_the_first_look_is_terminated_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text("import time\n\ntime.sleep(600)\n")
    assert terminated(tmp_path, "scratch/velodrome-*/look-*", "hanging:app") == 130
    assert (tmp_path / "torn-down").exists()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_stack_that_cannot_serve_the_app_is_refused_with_the_cure(tmp_path: Path) -> None:
    ended = velodrome(tmp_path, *PLAIN, "--stack", "uvicorn")
    assert ended.returncode == 2, ended.stderr
    assert "wsgi, which uvicorn is not" in ended.stderr
    assert "granian-wsgi" in ended.stderr
