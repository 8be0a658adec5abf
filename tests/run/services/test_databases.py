"""Databases that velodrome starts: they answer, keep their password to themselves, and leave nothing."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from velodrome.guest import client
from velodrome.model.errors import CompanionFailedError, CompanionMissingError
from velodrome.run.environments import guest_tree
from velodrome.run.services import database, service
from velodrome.run.services.database import Database, Kind, Plan, Site
from velodrome.run.services.service import Beside, Surroundings

STARTED = ("mariadb", "postgresql", "redis")
GONE_S = 10.0

Start = Callable[..., Beside]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts companions by name, or skips where one is not installed; they are ended with the test."""
    with ExitStack() as running:

        def start(*names: str, **given: str) -> Beside:
            surroundings = Surroundings(guest_tree.export(), given=given)
            try:
                return service.start_services(names, surroundings, running)
            except CompanionMissingError as missing:
                if given:
                    raise
                pytest.skip(str(missing))

        yield start


def tree(root: int) -> list[psutil.Process]:
    process = psutil.Process(root)
    return [process, *process.children(recursive=True)]


def test_each_is_found_by_looking_and_so_is_what_makes_its_tables() -> None:
    assert {"mariadb", "mongodb", "postgresql", "redis"} <= set(service.known_services())
    for name in client.databases():
        preparers = [
            entry.name for entry in client.clients().values() if entry.database == name and entry.prepare
        ]
        assert len(preparers) == (name != "sqlite"), name
        for awaits in (False, True):
            assert client.choose_client(name, "", awaits).awaits == awaits


@pytest.mark.parametrize("name", STARTED)
def test_one_that_is_started_has_answered_and_is_gone_with_all_it_wrote(name: str) -> None:
    with ExitStack() as running:
        try:
            beside = service.start_services((name,), Surroundings(guest_tree.export()), running)
        except CompanionMissingError as missing:
            pytest.skip(str(missing))
        assert beside.versions[name][0].isdigit()
        pid = beside.pids[name]
        processes, folder = tree(pid), Path(psutil.Process(pid).cwd())
        assert (folder.parent if folder.name == "data" else folder).name.startswith("database-")
    assert [process for process in processes if process.is_running()] == []
    assert not folder.exists()


@pytest.mark.parametrize("name", STARTED)
def test_nobody_can_read_its_password_nor_does_it_run_as_root(start: Start, name: str) -> None:
    beside = start(name)
    password = beside.running[name].url.partition("@")[0].rpartition(":")[2]
    assert len(password) == 24
    for process in psutil.process_iter():
        try:
            assert password not in " ".join(process.cmdline()), process
        except psutil.Error:
            continue
    if os.geteuid() == 0:
        assert {process.uids().real for process in tree(beside.pids[name])}.isdisjoint({0})


def test_a_killed_velodrome_leaves_no_database(tmp_path: Path, start: Start) -> None:
    names = [name for name in STARTED if start(name)]  # skips where one is not there
    program = f"""
import time
from contextlib import ExitStack
from velodrome.run.environments import environment, guest_tree
from velodrome.run.services import service
from velodrome.run.services.service import Surroundings

with ExitStack() as running:
    beside = service.start_services({names!r}, Surroundings(guest_tree.export()), running)
    print(*beside.pids.values(), flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as ours:
        assert ours.stdout is not None
        pids = [int(word) for word in ours.stdout.readline().split()]
        processes = [process for pid in pids for process in tree(pid)]
        folders = [Path(psutil.Process(pid).cwd()) for pid in pids]
        ours.kill()
    assert len(pids) == len(STARTED)
    until = time.monotonic() + GONE_S
    while any(process.is_running() for process in processes) or any(folder.exists() for folder in folders):
        assert time.monotonic() < until, (processes, folders)
        time.sleep(0.05)


@pytest.mark.parametrize("name", STARTED)
def test_one_that_is_not_installed_is_reported_with_its_cure(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "ADMINISTRATION", "/nowhere")
    monkeypatch.setattr("velodrome.run.services.postgresql.VERSIONS", Path("/nowhere"))
    monkeypatch.setattr("velodrome.run.services.postgresql.folders", list)
    monkeypatch.setenv("PATH", "/nowhere")
    surroundings = Surroundings(guest_tree.export())
    with ExitStack() as running, pytest.raises(CompanionMissingError) as refused:
        service.start_services((name,), surroundings, running)
    assert "Debian: apt install" in str(refused.value)
    assert f"--database {name}=" in str(refused.value)


def test_mongodb_is_never_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VELODROME_MONGODB", raising=False)
    with (
        ExitStack() as running,
        pytest.raises(CompanionMissingError, match="velodrome starts none"),
    ):
        service.start_services(("mongodb",), Surroundings(guest_tree.export()), running)


@pytest.mark.parametrize("name", STARTED)
def test_one_that_the_user_brings_gets_its_tables_and_stays(start: Start, name: str) -> None:
    theirs = start(name)
    pid = theirs.pids[name]
    with ExitStack() as running:
        given = {name: theirs.running[name].url}
        surroundings = Surroundings(guest_tree.export(), given=given)
        beside = service.start_services((name,), surroundings, running)
        assert beside.variables == theirs.variables
        assert beside.pids == {}
        assert beside.versions == theirs.versions
    assert psutil.Process(pid).is_running()


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("mariadb", "mysql://me:geheim@127.0.0.1:9/x"),
        ("postgresql", "postgresql://me:geheim@127.0.0.1:9/x"),
        ("redis", "redis://:geheim@127.0.0.1:9/0"),
    ],
)
def test_one_that_the_user_brings_and_that_does_not_answer_is_reported_without_its_password(
    start: Start, name: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "GIVEN_S", 0.1)
    with pytest.raises(
        CompanionFailedError, match=r"127.0.0.1:9 gives no correct response: .*refused"
    ) as refused:
        start(name, **{name: url})
    assert "geheim" not in str(refused.value)


def test_a_database_that_ends_at_once_is_reported_with_its_last_words() -> None:
    def plan(site: Site) -> Plan:
        return Plan(then=("/bin/sh", "-c", "echo no room >&2; exit 3"), url="redis://127.0.0.1:9/0")

    kind = Kind("redis", "Redis", "redis://host", plan)
    started = kind.service().start(Surroundings(guest_tree.export()))
    assert isinstance(started, Database)
    with started, pytest.raises(CompanionFailedError, match=r"ended before it answered: exit 3.*\n  no room"):
        started.ready()


def test_a_database_whose_preparation_fails_is_reported_with_what_that_printed() -> None:
    def plan(site: Site) -> Plan:
        first = (("/bin/sh", "-c", "echo the disk is full; exit 7"),)
        return Plan(then=("/bin/true",), url="redis://127.0.0.1:9/0", first=first)

    kind = Kind("redis", "Redis", "redis://host", plan)
    started = kind.service().start(Surroundings(guest_tree.export()))
    sentence = r"the disk is full\n.*sh ended with exit status 7"
    with started, pytest.raises(CompanionFailedError, match=sentence):
        started.ready()
