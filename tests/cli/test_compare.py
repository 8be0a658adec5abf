"""`velodrome compare` takes an app from its name to what to paste, and says at once where that cannot be."""

import json
from pathlib import Path

from tests.cli.running import velodrome
from tests.run.apps.theirs import SHOP

PLAIN = ("compare", "plain:application", "--cwd", str(SHOP))
SHORT = ("--stack", "waitress", "--stack", "gunicorn-sync", "--blocks", "1", "-z", "0.5s", "--wait")


def test_an_app_is_ranked_and_what_to_paste_is_told(tmp_path: Path) -> None:
    words = ("--request", "GET /env", "--env", "SHOP_NAME=secret", "--out", "out")
    commands = ("--setup", f"touch {tmp_path}/set-up", "--teardown", f"touch {tmp_path}/torn-down")
    ended = velodrome(tmp_path, *PLAIN, *SHORT, *words, *commands)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "plain:application is the function application, called through wsgi" in ended.stderr
    # Not of the ranking: on a busy machine there is none.
    (answer,) = json.loads((tmp_path / "out" / "verdict.json").read_text())["answers"]
    for standing in answer["standings"]:
        assert standing["deploy"].endswith(" plain:application")
        assert standing["again"].startswith("velodrome compare plain:application --stack ")
    assert (tmp_path / "set-up").exists()
    assert (tmp_path / "torn-down").exists()
    stored = (tmp_path / "out" / "results.jsonl").read_text()
    assert "secret" not in stored
    assert "secret" not in ended.stdout
    trials = [json.loads(one) for one in stored.splitlines()[1:]]
    assert {(one["kind"], one["trial"]["contestant"]["stack"]) for one in trials} == {
        ("measurement", "waitress"),
        ("measurement", "gunicorn-sync"),
    }
    again = velodrome(tmp_path, "judge", "out")
    assert again.returncode == 0, again.stderr


def test_answers_that_are_not_right_are_told_at_once_and_nothing_is_measured(tmp_path: Path) -> None:
    ended = velodrome(tmp_path, *PLAIN, *SHORT, "--request", "GET /nope", "--out", "out")
    assert ended.returncode == 2
    assert "it answers GET /nope with status 404, not 2xx: «no such thing»" in ended.stderr
    assert "nothing was measured" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_a_setup_that_fails_ends_it_before_anything(tmp_path: Path) -> None:
    ended = velodrome(tmp_path, *PLAIN, *SHORT, "--setup", "echo no database; false")
    assert ended.returncode == 3
    assert "no database" in ended.stderr


def test_what_cannot_be_asked_for_is_told_with_the_cure(tmp_path: Path) -> None:
    ended = velodrome(tmp_path, *PLAIN, "--stack", "uvicorn")
    assert ended.returncode == 2, ended.stderr
    assert "is served through wsgi, which uvicorn cannot do. These can: granian-wsgi" in ended.stderr
