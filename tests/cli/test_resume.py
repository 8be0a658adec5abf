"""A run is gone on with: with more blocks, and for some of its cells alone."""

from pathlib import Path

import pytest
from tests.cli.running import with_own_cache

from velodrome.run.racing import store

STUDY = """\
title = "Two that answer at once"
blocks = 1
contestants = ["socketserver-single", "socketserver-threading"]
[[questions]]
recipe = "hello"
loads = [{connections = 1, duration = "1s", drain = "0.2s"}]
"""


def raced(where: Path, *words: str) -> str:
    done = with_own_cache(where, "run", "./two.toml", "--out", "out", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.exhaustive
def test_a_run_is_given_another_block_of_one_cell(tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(STUDY)
    assert "its one block was run" in raced(tmp_path)
    again = raced(tmp_path, "--resume", "--blocks", "2", "--only", "hello/socketserver-single")
    trials = store.read(tmp_path / "out").trials
    assert sorted((trial.trial.contestant.stack, trial.trial.block) for trial in trials) == [
        ("socketserver-single", 0),
        ("socketserver-single", 1),
        ("socketserver-threading", 0),
    ]
    assert "before its end: 3 of 4 trials are there" in again
