"""`velodrome cache`: shown, pruned, verified."""

import json
import os
from pathlib import Path

import pytest
from tests.cli.running import velodrome
from tests.run.environments import packages

from velodrome.guest.client import Client
from velodrome.run import cache
from velodrome.run.environments.environment import for_client


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An environment in a cache of the test's own."""
    monkeypatch.setenv("VELODROME_CACHE", str(tmp_path / "cache"))
    for name, value in packages.of_index(tmp_path / "index").items():
        monkeypatch.setenv(name, value)
    packages.wheel(tmp_path / "index", "pedal", "1.0", {"pedal.py": "A = 1\n"})
    home = environment()
    for number in cache._using.values():  # as if the run that made it had ended
        os.close(number)
    cache._using.clear()
    return home


def environment() -> Path:
    return for_client(Client("tiny", "sqlite", "", None, requires=("pedal==1.0",))).python.parents[1]  # type: ignore[arg-type]


def test_what_is_kept_is_shown_as_lines_and_as_json(made: Path) -> None:
    shown = velodrome(None, "cache")
    assert shown.returncode == 0
    assert f"envs/{made.name}" in shown.stdout
    assert "the client tiny" in shown.stdout
    document = json.loads(velodrome(None, "cache", "--json").stdout)
    (entry,) = document["kept"]
    assert (entry["kind"], entry["name"], entry["in_use"]) == ("envs", made.name, False)
    assert 0 < entry["freed_bytes"] <= entry["size_bytes"] == document["size_bytes"]


def test_an_empty_cache_is_no_error(tmp_path: Path) -> None:
    shown = velodrome(None, "cache", VELODROME_CACHE=str(tmp_path))
    assert shown.returncode == 0
    assert str(tmp_path) in shown.stdout
    assert json.loads(velodrome(None, "cache", "--json", VELODROME_CACHE=str(tmp_path)).stdout)["kept"] == []


def test_it_is_pruned_by_age_or_by_size(made: Path) -> None:
    assert velodrome(None, "cache", "prune").returncode == 0
    assert made.exists(), "it was used today"
    assert velodrome(None, "cache", "prune", "--to-size", "1GB").returncode == 0
    assert made.exists()
    pruned = velodrome(None, "cache", "prune", "--older-than", "0s")
    assert pruned.returncode == 0
    assert made.name in pruned.stdout
    assert not made.exists()


@pytest.mark.parametrize("words", [("--older-than", "soon"), ("--to-size", "small")])
def test_an_amount_that_cannot_be_read_is_a_usage_error(words: tuple[str, str], tmp_path: Path) -> None:
    ended = velodrome(None, "cache", "prune", *words, VELODROME_CACHE=str(tmp_path))
    assert ended.returncode == 2
    assert words[1] in ended.stderr


def test_content_that_changed_behind_size_and_time_is_found_by_its_hash_and_made_anew(made: Path) -> None:
    assert velodrome(None, "cache", "verify").returncode == 0
    (file,) = made.glob("lib/python*/site-packages/pedal.py")
    was = file.stat()
    file.unlink()
    file.write_text("A = 2\n")
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    found = velodrome(None, "cache", "verify")
    assert found.returncode == 1
    assert "pedal.py" in found.stdout
    assert environment() == made
    assert file.read_text() == "A = 1\n"
    assert velodrome(None, "cache", "verify").returncode == 0
