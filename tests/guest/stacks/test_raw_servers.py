"""The servers over bare connections: what is on the wire, and that they end with all their processes."""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

import pytest
from tests.waiting import eventually

from velodrome.guest import catalog
from velodrome.guest.recipe import RECIPE_VARIABLE, Recipe
from velodrome.guest.stack import Launch, Stack
from velodrome.run.environments import environment, guest_tree

RECIPES = catalog.recipes()
STACKS = [stack for stack in catalog.stacks().values() if stack.interface.startswith("socket_")]
PATIENCE_S = 20.0


@dataclass
class Served:
    """A running server, and all processes that carry its mark in their environment."""

    process: subprocess.Popen[bytes]
    port: int
    mark: str = field(repr=False)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def talk(self, request: bytes) -> bytes:
        """Send bytes, no more, and return all that comes till the server closes."""
        with self.connect() as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(65536), b""))

    def processes(self) -> list[int]:
        """Return the processes there are of it, zombies not counted (those have no environment)."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if self.mark.encode() in Path("/proc", name, "environ").read_bytes():
                    found.append(int(name))
        return found


@contextlib.contextmanager
def serving(stack: Stack, recipe: Recipe, **knobs: int) -> Iterator[Served]:
    if (why := environment.available(stack)) is not None:
        pytest.skip(f"{stack.name}: {why}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = f"velodrome.guest.interfaces.{stack.interface}:app"
    command = stack.command(Launch("127.0.0.1", port, app, stack.settings(knobs)))
    python = str(environment.environment_for(stack).python)
    mark = secrets.token_hex(12)
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(guest_tree.export()), "MARK": mark, **command.env}
    env[RECIPE_VARIABLE] = recipe.to_json()
    process = subprocess.Popen([python, *command.argv], env=env, stderr=subprocess.PIPE)
    served = Served(process, port, mark)

    def listens() -> bool:
        assert process.poll() is None, process.stderr and process.stderr.read().decode()
        with contextlib.suppress(OSError), served.connect():
            return True
        return False

    try:
        assert eventually(listens, PATIENCE_S), f"{stack.name} did not start"
        yield served
    finally:
        for pid in served.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()


@dataclass
class Unclosed:
    """A connection whose file outlives the answer that is read from it."""

    file: BinaryIO

    def makefile(self, mode: str) -> Self:
        return self

    def close(self) -> None:
        """Stay open: another answer follows."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def get(*lines: str, version: str = "1.1", method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} / HTTP/{version}", "Host: a", *lines, "", ""]).encode()


@pytest.fixture(scope="module", params=STACKS, ids=lambda stack: stack.name)
def stack(request: pytest.FixtureRequest) -> Stack:
    assert isinstance(request.param, Stack)
    return request.param


def test_hello_is_84_bytes_on_the_wire_and_odd_requests_get_their_status(stack: Stack) -> None:
    with serving(stack, RECIPES["hello"]) as served:
        whole = served.talk(get())
        assert len(whole) == 84
        assert whole.startswith(b"HTTP/1.1 200 OK\r\n")
        assert b"Connection: close" in served.talk(get(version="1.0"))
        assert len(served.talk(get("Connection: close") + get())) == 84, "answered behind a close"
        statuses = [
            served.talk(request).split(b" ")[1]
            for request in (
                get(method="DELETE"),
                get("Transfer-Encoding: chunked"),
                get("Content-Length: many"),
                b"GET / HTTP/1.1\r\nA: " + b"a" * 200_000,
            )
        ]
        assert statuses == [b"405", b"411", b"400", b"431"]
        assert served.talk(b"GET / HTTP/1.1\r\nHo") == b"", "half a request was answered"
        assert len(served.talk(get())) == 84, "it does not serve any more"


def test_requests_sent_without_waiting_are_all_answered_where_the_connection_is_kept(stack: Stack) -> None:
    with serving(stack, RECIPES["hello"]) as served:
        first = served.talk(get())
        answers = 1 if b"Connection: close" in first else 3
        assert served.talk(get() * 3) == first * answers


def test_answers_are_whole_for_a_client_that_has_sent_all_and_reads_late(stack: Stack) -> None:
    recipe = RECIPES["large"]
    many = 40  # 8.8 MB: more than both sockets hold, so most of it waits in the server
    with serving(stack, recipe) as served, served.connect() as connection:
        connection.sendall(get() * many)
        connection.shutdown(socket.SHUT_WR)
        reader = connection.makefile("rb")
        for number in range(many if stack.keeps_alive else 1):
            response = HTTPResponse(cast(socket.socket, Unclosed(reader)))
            response.begin()
            assert response.read() == recipe.answer(), f"answer {number} is not what it should be"
        # A server that ends the connection with requests unread resets it.
        with contextlib.suppress(ConnectionResetError):
            assert reader.read() == b"", "more than was requested"
        assert len(served.talk(get())) > 220_000, "it does not serve any more"


def test_an_upload_in_pieces_behind_an_expected_continue_is_read_whole(stack: Stack) -> None:
    recipe = RECIPES["upload-1mb"]
    head = get(f"Content-Length: {recipe.upload_bytes}", "Expect: 100-continue", method="POST")
    with serving(stack, recipe) as served, served.connect() as connection:
        connection.sendall(head)
        assert connection.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        for at in range(0, recipe.upload_bytes, 300_000):
            connection.sendall(recipe.upload[at : at + 300_000])
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK\r\n")


def test_sigterm_ends_all_processes_at_once_whatever_clients_hold_open(stack: Stack) -> None:
    with serving(stack, RECIPES["stream"]) as served, served.connect() as busy:
        busy.sendall(get())
        busy.recv(10)
        idle = served.connect()
        served.process.send_signal(signal.SIGTERM)
        started = time.monotonic()
        _, errors = served.process.communicate(timeout=PATIENCE_S)
        assert time.monotonic() - started < 5
        assert (served.process.returncode, errors.decode()) == (0, "")
        assert served.processes() == [], "a child outlives its parent"
        idle.close()


@pytest.mark.parametrize(
    ("pause_s", "workers"),
    [(0.004, 12)]
    + [
        pytest.param(pause_s, workers, marks=pytest.mark.exhaustive)
        for pause_s in (0.0, 0.002, 0.006, 0.01, 0.02)
        for workers in (12, 60)
    ],
)
@pytest.mark.parametrize(
    "name", ["published-prefork", "published-shared-socket", "asyncio-prefork", "asyncio-shared-socket"]
)
def test_sigterm_while_it_forks_leaves_none_and_says_nothing(name: str, pause_s: float, workers: int) -> None:
    with serving(catalog.stack(name), RECIPES["hello"], workers=workers) as served:
        time.sleep(pause_s)  # into its forking; not a wait for anything
        served.process.terminate()
        _, errors = served.process.communicate(timeout=PATIENCE_S)
        assert served.process.returncode == 0
        if name != "published-prefork":  # as published, processes share one selector, and say so now and then
            assert errors.decode() == ""
        assert served.processes() == [], "a child outlives its parent"


def test_the_children_of_a_killed_server_end_too(stack: Stack) -> None:
    with serving(stack, RECIPES["hello"]) as served:
        expected = int(stack.knobs.get("workers", 1)) if stack.interface == "socket_asyncio" else 1
        assert eventually(lambda: len(served.processes()) >= expected, PATIENCE_S)
        served.process.kill()
        served.process.wait()
        assert eventually(lambda: served.processes() == [], PATIENCE_S)
