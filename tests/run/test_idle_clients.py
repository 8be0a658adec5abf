"""Idle connections are there as long as they are to be, and what became of them is reported."""

import os
import signal
import socket
import threading
from collections.abc import Iterator

import pytest
from tests.waiting import wait_until

from velodrome.model.errors import IdleError, LoadRefusedError
from velodrome.run.idle_clients import count_accepted, hold_idle

PATIENCE_S = 10.0


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=200) as made:
        yield made


def url(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}/"


def accept_all(listener: socket.socket, count: int, kept: list[socket.socket]) -> threading.Thread:
    def accept() -> None:
        for _ in range(count):
            kept.append(listener.accept()[0])

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    return thread


def test_none_asked_for_are_none(listener: socket.socket) -> None:
    with hold_idle(0, url(listener)) as idle:
        assert idle is None


def test_they_are_held_and_then_closed(listener: socket.socket) -> None:
    kept: list[socket.socket] = []
    thread = accept_all(listener, 150, kept)
    with hold_idle(150, url(listener)) as idle:
        assert idle is not None
        thread.join(PATIENCE_S)
        facts = idle.facts()
        assert (facts.asked, facts.opened, facts.accepted, facts.still_open) == (150, 150, 150, 150)
        assert count_accepted(listener.getsockname()[1]) == 150
    for connection in kept:
        connection.settimeout(PATIENCE_S)
        assert connection.recv(1) == b"", "it was not closed"
        connection.close()


def test_what_lies_in_the_listen_queue_is_open_and_not_accepted(listener: socket.socket) -> None:
    kept: list[socket.socket] = []
    thread = accept_all(listener, 3, kept)
    with hold_idle(20, url(listener)) as idle:
        assert idle is not None
        thread.join(PATIENCE_S)
        facts = idle.facts()
        assert (facts.opened, facts.accepted, facts.still_open) == (20, 3, 20)


def test_what_the_server_ends_or_resets_is_counted(listener: socket.socket) -> None:
    kept: list[socket.socket] = []
    thread = accept_all(listener, 30, kept)
    with hold_idle(30, url(listener)) as idle:
        assert idle is not None
        thread.join(PATIENCE_S)
        for connection in kept[:10]:
            connection.sendall(b"HTTP/1.1 408 Request Timeout\r\n\r\n")
            connection.close()
        linger = b"\1\0\0\0\0\0\0\0"  # close with a reset
        kept[10].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        kept[10].close()
        wait_until(lambda: idle.facts().still_open <= 19, PATIENCE_S)
        assert (idle.facts().opened, idle.facts().still_open) == (30, 19)


def test_a_server_that_refuses_is_a_fact() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        nowhere = url(gone)
    with hold_idle(20, nowhere) as idle:
        assert idle is not None
        assert (idle.facts().opened, idle.facts().still_open) == (0, 0)


def test_no_connection_is_held_to_somebody_elses_machine() -> None:
    with (
        pytest.raises(LoadRefusedError, match=r"refusing to hold connections to 192\.0\.2\.1"),
        hold_idle(1, "http://192.0.2.1:80/"),
    ):
        pass


def test_the_end_of_the_process_that_holds_them_is_an_error(listener: socket.socket) -> None:
    with hold_idle(5, url(listener)) as idle:
        assert idle is not None
        os.kill(idle.pid, signal.SIGKILL)
        with pytest.raises(IdleError, match="its process has ended"):
            idle.facts()
