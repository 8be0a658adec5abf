"""`velodrome requests`, as a user runs it: what it prints can be edited and sent."""

import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from velodrome.plan.requests import file

LINE = '::1 - - [10/Oct/2000:13:55:{:02} -0700] "{} HTTP/1.1" {} 5\n'


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "velodrome", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "access.log"
    path.write_text(
        "".join(LINE.format(at % 60, f"GET /items/{1 + at % 9}?page={at % 3}", 200) for at in range(90))
        + LINE.format(1, "GET /lost", 404) * 10
    )
    return path


def test_a_log_becomes_a_file_that_can_be_sent(log: Path, tmp_path: Path, shop: str) -> None:
    ended = run("requests", "--access-log", log)
    assert ended.returncode == 0, ended.stderr
    assert "100 requests in 60 s" in ended.stderr
    assert "left out: answers of status 404, 10 of them (10.0%)" in ended.stdout
    path = tmp_path / "mix.toml"
    path.write_text(ended.stdout)
    [item] = file.read(path)
    assert (item.name, item.weight) == ("GET /items/*?page=*", 90)
    loaded = run("load", shop, "--requests-file", path, "-n", "20", "--json")
    assert loaded.returncode == 0, loaded.stderr
    assert '"ok": 20' in loaded.stdout


def test_what_cannot_be_shown_is_one_sentence(log: Path, tmp_path: Path) -> None:
    for words, sentence in (
        ((), "no source of requests"),
        (("--access-log", log, "--openapi", log), "--access-log and --openapi each"),
        (("--access-log", log, "--methods", "GET,FETCH"), "--methods GET,FETCH: 'FETCH' is no method"),
        (("--openapi", log), "access.log: it is no OpenAPI document"),
    ):
        ended = run("requests", *words)
        assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)
        assert sentence in ended.stderr


def test_headers_are_written_without_their_values_and_sent_with_them(
    log: Path, tmp_path: Path, shop: str
) -> None:
    ended = run("requests", "--access-log", log, "-H", "X-Trace: s3cret")
    assert 'headers = { X-Trace = "•••" }' in ended.stdout
    assert "s3cret" not in ended.stdout + ended.stderr
    path = tmp_path / "mix.toml"
    path.write_text(ended.stdout)
    refused = run("load", shop, "--requests-file", path, "-n", "20")
    assert refused.returncode == 2
    assert "the value of X-Trace is a secret and was not stored; pass it again: --header" in refused.stderr
    loaded = run("load", shop, "--requests-file", path, "-n", "20", "-H", "X-Trace: s3cret", "--json")
    assert '"ok": 20' in loaded.stdout, loaded.stderr
    with urllib.request.urlopen(f"{shop}/seen", timeout=10) as answer:
        assert b" s3cret" in answer.read()
