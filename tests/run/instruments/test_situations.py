"""What probes count: of servers that lose, hold up or mix up requests, and of one that does not."""

import asyncio
import socketserver
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from velodrome.model.diagnosis import Met, Probe
from velodrome.run.instruments import situations
from velodrome.run.instruments.clients import Client, Where
from velodrome.run.instruments.mixed_up import canary
from velodrome.run.instruments.standing import Standing

pytestmark = pytest.mark.unit
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def made(handler: Handler, situation: Callable[[Where], Awaitable[Met]]) -> Met:
    """Return what a situation meets on a server of this test, in this process."""

    async def both() -> Met:
        server = await asyncio.start_server(handler, "127.0.0.1", 0)
        async with server:
            return await situation(Where("127.0.0.1", server.sockets[0].getsockname()[1]))

    return asyncio.run(both())


def answering(keeps_s: float = 60.0) -> Handler:
    """Return a server that answers each request, and ends a connection that was idle for so long."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                async with asyncio.timeout(keeps_s):
                    await reader.readuntil(b"\r\n\r\n")
            except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
                writer.close()
                return
            writer.write(OK)

    return handle


def one_at_a_time() -> Handler:
    """Return a server that looks at no other connection before it is done with one."""
    turn = asyncio.Lock()
    answer = answering()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with turn:
            await answer(reader, writer)

    return handle


def limited(most: int) -> Handler:
    """Return a server that refuses where more connections are open."""
    open_now = 0
    answer = answering()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now
        open_now += 1
        try:
            if open_now <= most:
                await answer(reader, writer)
                return
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
            writer.close()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            open_now -= 1

    return handle


def echoing(shared: bool, between: tuple[bytes, bytes] = (b"x-request-id: ", b"\r\n")) -> Handler:
    """Return a server that answers with what stands there in a request: the last one that came, or its own."""
    last = b""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal last
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            last = own = head.lower().partition(between[0])[2].partition(between[1])[0]
            await asyncio.sleep(0)
            body = last if shared else own
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    return handle


def test_requests_that_meet_the_end_of_their_connection_are_lost() -> None:
    short = made(answering(0.2), lambda at: situations.reuse(at, idle_s=0.2, count=4, longer_s=0.5))
    assert (short.hits, short.of) == (4, 4)
    assert "reset" in short.outcomes
    kept = made(answering(60), lambda at: situations.reuse(at, idle_s=0.0, count=4, longer_s=0.05))
    assert (kept.hits, kept.of, kept.outcomes) == (0, 4, {"ok": 4})


def test_beside_idle_connections_a_limit_refuses_and_none_does_not() -> None:
    refused = made(limited(8), lambda at: situations.idle(at, count=8))
    assert refused.hits == refused.of > 0
    assert refused.outcomes == {"bad_status": refused.of}
    assert refused.figures["kept"] == 8
    assert "status 503" in refused.said
    free = made(limited(8), lambda at: situations.idle(at, count=0))
    assert (free.hits, free.of) == (0, 16)
    assert made(answering(), lambda at: situations.idle(at, count=32)).hits == 0


def test_an_idle_connection_holds_a_server_that_serves_one_at_a_time() -> None:
    held = made(one_at_a_time(), lambda at: situations.idle(at, count=1, requests=4))
    assert held.hits == held.of > 0
    assert set(held.outcomes) == {"timeout"}


def test_a_slow_client_holds_a_server_that_serves_one_at_a_time_and_no_other() -> None:
    held = made(one_at_a_time(), lambda at: situations.slow(at, clients=1, requests=4))
    assert held.hits == held.of > 0
    alone = made(one_at_a_time(), lambda at: situations.slow(at, clients=0, requests=4))
    assert (alone.hits, alone.of) == (0, 4)
    assert made(answering(), lambda at: situations.slow(at, clients=8, requests=4)).hits == 0


def test_a_canary_is_met_in_the_answer_of_another_request_only_where_they_share() -> None:
    mixed = made(echoing(True), lambda at: canary(at, connections=8, requests=64))
    assert 0 < mixed.hits <= mixed.of == 64
    assert made(echoing(True), lambda at: canary(at, connections=1, requests=32)).hits == 0
    own = made(echoing(False), lambda at: canary(at, connections=8, requests=64))
    assert (own.hits, own.of) == (0, 64)
    assert made(answering(), lambda at: canary(at, connections=8, requests=64)).of == 0


@pytest.mark.parametrize(
    ("between", "given", "carries"),
    [
        ((b"x-shop: ", b"\r\n"), {"headers": (("X-Shop", "kelvin"),)}, True),
        ((b"shop=", b" "), {"path": "/?page=2&shop=kelvin"}, True),
        ((b"authorization: bearer ", b"\r\n"), {"headers": (("Authorization", "Bearer kelvin"),)}, False),
        ((b"x-api-token: ", b"\r\n"), {"headers": (("X-API-Token", "kelvin"),)}, False),
    ],
    ids=["a header", "a parameter", "who the client is", "a secret"],
)
def test_what_an_app_repeats_of_its_request_carries_a_name_where_that_is_no_secret(
    between: tuple[bytes, bytes], given: dict[str, Any], carries: bool
) -> None:
    def look(at: Where) -> Awaitable[Met]:
        return canary(replace(at, **given), connections=8, requests=64)

    shared, own = made(echoing(True, between), look), made(echoing(False, between), look)
    assert (shared.hits > 0, shared.of) == (carries, 64 if carries else 0)
    assert (own.hits, own.of) == (0, 64 if carries else 0)


def test_the_next_request_on_a_connection_waits_for_what_is_done_behind_an_answer() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return
            writer.write(OK)
            await asyncio.sleep(0.06)

    same = made(handle, lambda at: situations.again(at, same=1, pairs=4))
    assert (same.hits, same.of) == (4, 4)
    assert made(handle, lambda at: situations.again(at, same=0, pairs=4)).hits == 0


@pytest.mark.parametrize("more", [b"Connection: close\r\n", b""], ids=["as it says", "silently"])
def test_on_a_connection_that_its_first_answer_ends_no_second_request_is_late(more: bytes) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK.replace(b"\r\n", b"\r\n" + more, 1))
        writer.close()

    assert made(handle, lambda at: situations.again(at, same=1, pairs=4)).of == 0


def closing(reads: bool = True, lingers: bool = False) -> Handler:
    """Return a server that ends each connection with its answer, whether or not it has read the request.

    One that lingers reads on until its client ends (RFC 9112, 9.6).
    """

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if reads:
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
        else:
            await reader.read(1)
        writer.write(OK)
        if lingers:
            writer.write_eof()
            while await reader.read(65_536):
                pass
        writer.close()

    return handle


class Answering(socketserver.StreamRequestHandler):
    """Answers once."""

    def handle(self) -> None:
        while self.rfile.readline() != b"\r\n":
            pass
        self.wfile.write(OK)


class Server(socketserver.ThreadingTCPServer):
    """In threads of its own: a burst waits for nothing else."""

    daemon_threads = True
    request_queue_size = 64


def test_a_burst_that_is_taken_in_has_nobody_late() -> None:
    with Server(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        found = asyncio.run(situations.burst(Where("127.0.0.1", server.server_address[1]), count=32))
        server.shutdown()
    assert (found.hits, found.of, found.outcomes) == (0, 32, {"answered": 32})


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's counters")
def test_uploads_that_are_not_read_are_reset() -> None:
    unread = made(closing(reads=False), lambda at: situations.upload(at, size=4_000_000))
    assert unread.hits == unread.of

    def without(at: Where) -> Awaitable[Met]:
        return situations.upload(replace(at, method="POST", body=b"x" * 200_000), size=0)

    assert made(closing(reads=False), without).outcomes == {"ok": 16}
    for handler in (closing(), closing(reads=False, lingers=True)):
        # The counter is that of the machine: a connection of a neighbour may be among those of one try.
        tries = [made(handler, lambda at: situations.upload(at, size=200_000)) for _ in range(5)]
        assert all(met.outcomes == {"ok": 16} for met in tries)
        assert min(met.hits for met in tries) == 0


@pytest.mark.parametrize(
    ("sent", "outcome"),
    [
        (OK, "ok"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "ok"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, "ok"),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", "ok"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhullo", "wrong_body"),
        (b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "bad_status"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", "reset"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "bad_protocol"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "bad_protocol"),
        (b"", "reset"),
    ],
)
def test_how_a_request_ended_is_known_by_what_came(sent: bytes, outcome: str) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        writer.close()

    async def both() -> str:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        async with server:
            at = Where("127.0.0.1", server.sockets[0].getsockname()[1], expected=b"hello")
            async with Client(at) as client:
                return (await client.request()).outcome

    assert asyncio.run(both()) == outcome


def test_a_situation_can_be_made_where_an_event_loop_runs_as_in_a_notebook() -> None:
    def make() -> Met:
        return made(answering(), lambda at: situations.slow(at, clients=1, requests=4))

    async def notebook() -> Met:
        return situations.beside_loops(make)

    assert asyncio.run(notebook()).of == situations.beside_loops(make).of == 4


def test_where_nobody_listens_a_request_is_refused() -> None:
    async def outcome_of_request() -> str:
        async with Client(Where("127.0.0.1", 1)) as client:
            return (await client.request()).outcome

    assert asyncio.run(outcome_of_request()) == "refused"


def test_a_request_is_written_with_its_own_headers_and_the_length_of_its_body() -> None:
    at = Where("shop", 80, "/buy", "POST", (("Host", "shop.example"), ("Content-Length", "9")), b"{}")
    assert at.request == b"POST /buy HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 2\r\n\r\n{}"
    assert b"X-Slow: x\r\n" in at.with_headers(X_Slow="x").head()


@pytest.mark.parametrize(
    ("fastest_ms", "patience_s"), [((), 3.0), ((20.0, 40.0), 3.0), ((3400.0, 3000.0), 9.0)]
)
def test_an_answer_is_waited_for_as_long_as_requests_of_a_slow_app_take(
    monkeypatch: pytest.MonkeyPatch, fastest_ms: tuple[float, ...], patience_s: float
) -> None:
    seen = list[Where]()

    async def situation(at: Where) -> Met:
        seen.append(at)
        return Met(0, 1)

    monkeypatch.setitem(situations.SITUATIONS, "situation", situation)
    monkeypatch.setattr(situations, "where", lambda _: Where("127.0.0.1", 8000))
    monkeypatch.setattr(situations, "enter", lambda _: nullcontext())
    monkeypatch.setattr(situations, "host_beside", lambda _: nullcontext())
    loads = [SimpleNamespace(load=SimpleNamespace(fastest_ms=ms)) for ms in (*fastest_ms, None)]
    booted = SimpleNamespace(
        target=None, placed=None, site=SimpleNamespace(client=None), server=SimpleNamespace(exit=lambda: None)
    )
    trial = SimpleNamespace(contestant=SimpleNamespace(label="shop"))
    situations.meet(
        cast(Standing, SimpleNamespace(booted=booted, loads=loads, trial=trial)), Probe("situation", "x")
    )
    assert [at.patience_s for at in seen] == [pytest.approx(patience_s)]
