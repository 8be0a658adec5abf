"""One race at a time, also of users whose caches differ."""

from pathlib import Path

import pytest

from velodrome.model.errors import BusyError
from velodrome.run import cache
from velodrome.run.machine import measuring_lock
from velodrome.run.machine.measuring_lock import alone


def test_users_whose_caches_differ_exclude_each_other_by_a_file_they_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(measuring_lock.VARIABLE, str(tmp_path / "lock"))
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "one"))
    with alone("study one"):
        monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "two"))
        with pytest.raises(BusyError, match="study one"), alone("study two"):
            pass


def test_without_one_the_cache_holds_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(measuring_lock.VARIABLE, raising=False)
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    with alone("study one"):
        assert "study one" in (tmp_path / measuring_lock.NAME).read_text()
