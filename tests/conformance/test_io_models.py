"""Where models of I/O end: they die or stall as they do by nature, and say so themselves."""

import contextlib
import resource
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conformance.wire import Wire

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.run.drivers.driver import Target
from velodrome.run.machine.limits import Bounds
from velodrome.run.servers import Ready, Server, Serving, await_right_answer, fresh_port
from velodrome.run.supervision.ward import Exit

PATIENCE_S = 20.0
MANY = 1100
"""Connections: more than select has room for descriptors."""

MODELS = {name for name in catalog.stacks() if name.startswith("io-")}

PythonOf = Callable[[Stack], Path]


@contextlib.contextmanager
def served(name: str, python_of: PythonOf, tree: Path, **rlimits: int) -> Iterator[Server]:
    stack, recipe = catalog.stack(name), catalog.recipe("hello")
    serving = Serving(stack, recipe, python_of(stack), tree, fresh_port())
    with Server(serving, Bounds("rlimits", rlimits=rlimits)) as server:
        target = Target.of_recipe(server.url, recipe, catalog.interface(stack.interface).head_bytes(84))  # type: ignore[misc]
        ready = await_right_answer(target, server.exit, server.started, PATIENCE_S)
        assert isinstance(ready, Ready), (ready, server.last_lines())
        yield server


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Room for the clients' ends of many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def idle(server: Server, count: int, stop: Callable[[], bool]) -> Iterator[socket.socket]:
    """Open connections, one at a time, till there are enough or it is known how it ends."""
    for _ in range(count):
        if stop():
            return
        with contextlib.suppress(OSError):
            yield socket.create_connection(("127.0.0.1", server.serving.port), timeout=PATIENCE_S)


def ending(server: Server) -> Exit:
    """Wait for the server's end."""
    until = time.monotonic() + PATIENCE_S
    while (ended := server.exit()) is None:
        assert time.monotonic() < until, "it lives on"
        time.sleep(0.01)
    return ended


def status_of(server: Server) -> int:
    with Wire(server.serving.port) as wire:
        return wire.request("GET", b"").status


def test_select_dies_of_the_first_descriptor_over_1023(
    python_of: PythonOf, tree: Path, descriptors: None
) -> None:
    with served("io-select", python_of, tree) as server:
        opened = list(idle(server, MANY, lambda: server.exit() is not None))
        assert ending(server).code == 1
        assert "ValueError: filedescriptor out of range in select()" in server.last_lines()
        for connection in opened:
            connection.close()


@pytest.mark.parametrize("name", sorted(MODELS - {"io-select", "io-blocking"}))
def test_the_others_serve_beside_as_many_idle_connections(
    name: str, python_of: PythonOf, tree: Path, descriptors: None
) -> None:
    with served(name, python_of, tree) as server:
        opened = list(idle(server, MANY, lambda: False))
        assert status_of(server) == 200
        assert status_of(server) == 200
        assert len(opened) == MANY
        for connection in opened:
            connection.close()
        assert status_of(server) == 200, "it does not survive that they end"


def test_a_thread_for_each_connection_ends_where_threads_do(
    python_of: PythonOf, tree: Path, descriptors: None
) -> None:
    # Each thread's stack takes 8 MB of address space, so there is room for some dozens.
    with served("io-threads", python_of, tree, RLIMIT_AS=1 << 30) as server:
        opened = list(idle(server, MANY, lambda: server.exit() is not None))
        assert ending(server).code == 1
        assert "RuntimeError: can't start new thread" in server.last_lines()
        assert len(opened) > 10
        for connection in opened:
            connection.close()


def test_one_idle_connection_stalls_a_server_that_blocks(python_of: PythonOf, tree: Path) -> None:
    with served("io-blocking", python_of, tree) as server:
        port = server.serving.port
        with (
            Wire(port) as first,
            socket.create_connection(("127.0.0.1", port), timeout=0.3) as second,
        ):
            assert first.request("GET", b"").status == 200
            second.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with pytest.raises(TimeoutError):
                second.recv(1)
            first.socket.shutdown(socket.SHUT_RDWR)
            second.settimeout(PATIENCE_S)
            assert second.recv(1) == b"H", "it goes on when the idle one has gone"


def test_when_the_queue_of_signals_is_full_no_connection_is_forgotten(
    python_of: PythonOf, tree: Path
) -> None:
    with served("io-signal", python_of, tree, RLIMIT_SIGPENDING=1) as server, contextlib.ExitStack() as open_:
        wires = [open_.enter_context(Wire(server.serving.port)) for _ in range(50)]
        for _ in range(5):
            for wire in wires:
                wire.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
            for wire in wires:
                assert len(wire.socket.recv(1000)) == 84
