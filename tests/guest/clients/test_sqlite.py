"""The database of `query` steps: right rows for any number of threads, and no file."""

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from velodrome.guest.client import ROWS
from velodrome.guest.clients.sqlite import Database


@pytest.mark.parametrize("rows", [1, 20, ROWS])
def test_it_gives_as_many_rows_as_asked_with_consecutive_keys(rows: int) -> None:
    read = Database().reader(rows)
    for _ in range(5):
        keys = [row[0] for row in read()]
        assert keys == list(range(keys[0], keys[0] + rows))


def test_each_read_begins_at_another_key() -> None:
    read = Database().reader(1)
    assert len({read()[0][0] for _ in range(ROWS)}) == ROWS


def test_threads_read_at_once_over_a_few_pooled_connections() -> None:
    database = Database()
    read = database.reader(20)
    with ThreadPoolExecutor(8) as pool:
        lengths = set(pool.map(lambda _: len(read()), range(2000)))
    assert lengths == {20}
    assert 1 <= len(database.idle) <= 8


def test_two_databases_in_one_process_are_apart() -> None:
    database, other = Database(), Database()
    database.anchor.execute("DELETE FROM velodrome_item")
    assert len(other.reader(3)()) == 3


def test_it_leaves_no_file_open_and_none_on_disk() -> None:
    before = set(os.listdir(tempfile.gettempdir()))
    database = Database()
    database.reader(5)()
    if Path("/proc/self/fd").exists():
        held = [
            os.readlink(f"/proc/self/fd/{fd}")
            for fd in os.listdir("/proc/self/fd")
            if Path(f"/proc/self/fd/{fd}").is_symlink()
        ]
        assert not [path for path in held if "velodrome" in Path(path).name]
    assert not [
        name
        for name in set(os.listdir(tempfile.gettempdir())) - before
        if "velodrome" in name and ".db" in name
    ]


@pytest.mark.parametrize("rows", [1, 7])
def test_a_write_changes_as_many_rows_as_asked_every_time(rows: int) -> None:
    database = Database()
    store = database.writer(rows)
    assert [store() for _ in range(5)] == [rows] * 5
    (changes,) = database.anchor.execute("SELECT SUM(version) FROM velodrome_note").fetchone()
    assert changes == 5 * rows


def test_threads_write_at_once_and_none_is_lost() -> None:
    database = Database()
    store = database.writer(3)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: store(), range(400))) == {3}
    (changes,) = database.anchor.execute("SELECT SUM(version) FROM velodrome_note").fetchone()
    assert changes == 1200


def test_a_read_that_takes_a_while_waits_in_the_library_and_lets_other_threads_read() -> None:
    read = Database().reader(2, 100.0)
    read()
    began, began_cpu = time.monotonic(), time.process_time()
    with ThreadPoolExecutor(20) as pool:
        assert set(pool.map(lambda _: len(read()), range(20))) == {2}
    took_s = time.monotonic() - began
    assert 0.099 <= took_s < 1.5, "twenty at once, 100 ms each"
    assert time.process_time() - began_cpu < 0.5
