"""Delay, rate, loss, order and queue of a link come out as they were set."""

import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

import pytest
from tests.run.link.possible import JOINED_BY, NEEDS_LINK

from velodrome.model.load import MTU, SEGMENT, Link
from velodrome.model.measurement import LinkFacts
from velodrome.run.link import Site, enter, open_site

pytestmark = pytest.mark.measured

UDP_PAYLOAD = MTU - 28
"""Bytes that make a packet of the largest size: 20 of IP and 8 of UDP besides."""


@contextmanager
def pair(site: Site) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Connect generator's side and server's side."""
    with enter(site.server):
        listener = socket.create_server((site.host, 0))
    with enter(site.client):
        client = socket.create_connection(listener.getsockname(), timeout=30)
    server, _ = listener.accept()
    listener.close()
    with client, server:
        for end in (client, server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield client, server


def in_background(work: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        with suppress(OSError):  # the other end closes when it has seen enough
            work()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def echo_ms(site: Site, times: int) -> list[float]:
    """Return the milliseconds of round trips of one byte on one connection."""
    took = []
    with pair(site) as (client, server):

        def answer() -> None:
            while data := server.recv(1):
                server.sendall(data)

        in_background(answer)
        for _ in range(times):
            began = time.monotonic()
            client.sendall(b"x")
            client.recv(1)
            took.append((time.monotonic() - began) * 1e3)
            time.sleep(0.001)
    return took


def handshakes_ms(site: Site, times: int) -> list[float]:
    """Return the milliseconds of connecting, which the kernel answers by itself."""
    took = []
    with enter(site.server):
        listener = socket.create_server((site.host, 0))
    with listener, enter(site.client):
        for _ in range(times):
            with socket.socket() as client:
                began = time.monotonic()
                client.connect(listener.getsockname())
                took.append((time.monotonic() - began) * 1e3)
            listener.accept()[0].close()
    return took


def oversleep_ms(asked_ms: float) -> float:
    """Return by how much a sleep of that length is usually too long on this machine."""
    late = []
    for _ in range(5):
        began = time.monotonic()
        time.sleep(asked_ms / 1e3)
        late.append((time.monotonic() - began) * 1e3 - asked_ms)
    return statistics.median(late)


def bulk(site: Site, connections: int, settle_s: float, span_s: float) -> tuple[float, LinkFacts]:
    """Send all that goes from server to generator; return bytes per second received, and the link's facts."""
    with _many(site, connections) as pairs:

        def send(server: socket.socket) -> None:
            while True:
                server.sendall(bytes(1 << 18))

        def receive(number: int, client: socket.socket) -> None:
            # The kernel throws the bytes away: a copy for each would be the interpreter's work, not the link's.
            while count := client.recv_into(bytearray(1 << 14), 0, socket.MSG_TRUNC):
                totals[number] += count

        totals = [0] * connections
        for number, (client, server) in enumerate(pairs):
            client.settimeout(None)
            in_background(partial(send, server))
            in_background(partial(receive, number, client))
        time.sleep(settle_s)  # past slow start; not a wait for anything
        site.begin()
        before, began = sum(totals), time.monotonic()
        time.sleep(span_s)
        rate = (sum(totals) - before) / (time.monotonic() - began)
        facts = site.end()
    return rate, facts


@contextmanager
def _many(site: Site, count: int) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    if count == 0:
        yield []
        return
    with pair(site) as connection, _many(site, count - 1) as others:
        yield [connection, *others]


@JOINED_BY
@pytest.mark.parametrize("rtt_ms", [0.0, 20.0, pytest.param(160.0, marks=pytest.mark.exhaustive)])
def test_a_round_trip_takes_what_was_set_to_a_third_of_a_millisecond(rtt_ms: float, joined_by: str) -> None:
    with open_site(Link(rtt_ms), joined_by=joined_by) as site:
        shaken, echoed = handshakes_ms(site, 15), echo_ms(site, 15)
    # Between packets this machine's CPUs sleep, the deeper the longer; each of the two waits of a round trip ends with
    # waking one, and the client is woken as well. What that costs here is not the link's.
    waking_ms = 3 * oversleep_ms(rtt_ms / 2)
    assert min(*shaken, *echoed) >= rtt_ms
    # Waking this process up only adds, and on a busy machine more than the link is allowed to: the lower quartile of
    # what the kernel answers counts, and of an echo, which wakes two threads of the interpreter as well, the best.
    assert statistics.quantiles(shaken)[0] == pytest.approx(rtt_ms, abs=0.3 + waking_ms), (shaken, waking_ms)
    assert min(echoed) == pytest.approx(rtt_ms, abs=0.3 + waking_ms), (echoed, waking_ms)


@JOINED_BY
@pytest.mark.parametrize("rate_mbit", [pytest.param(10.0, marks=pytest.mark.exhaustive), 100.0])
def test_a_bottleneck_lets_through_what_was_set_to_a_twentieth(rate_mbit: float, joined_by: str) -> None:
    with open_site(Link(20.0, rate_mbit=rate_mbit), joined_by=joined_by) as site:
        rate, facts = bulk(site, connections=4, settle_s=2.0, span_s=2.0)
    assert rate * MTU / SEGMENT * 8e-6 == pytest.approx(rate_mbit, rel=0.05)
    assert facts.overrun == 0


@JOINED_BY
def test_what_is_lost_is_sent_again_and_nothing_else_is(joined_by: str) -> None:
    with open_site(Link(2.0, loss=0.01), joined_by=joined_by) as site:
        _, facts = bulk(site, connections=4, settle_s=0.5, span_s=3.0)
    lost = facts.back.dropped + (facts.back.lost or 0)
    assert facts.back.packets > 10_000
    assert lost == pytest.approx(
        facts.back.packets * 0.01, rel=0.25
    )  # over 100 losses: 10 % is one deviation
    assert facts.retransmitted == pytest.approx(lost, rel=0.05, abs=3)


@pytest.mark.exhaustive
@NEEDS_LINK
def test_the_same_seed_loses_the_same_packets_of_a_span_whatever_came_before_it() -> None:
    # Datagrams, because of these the sender alone decides how many there are; how many segments and acknowledgements
    # there are is also a matter of TCP's timing, as in the handshakes that each site begins with.
    def arrived(seed: int, before: int = 0) -> tuple[set[int], set[int]]:
        with open_site(Link(loss=0.2), seed=seed, joined_by="relay") as site:
            if before:
                datagrams(site, before, 100)
            spans = []
            for _ in range(2):
                site.begin()
                spans.append(set(datagrams(site, 300, 100)))
            return spans[0], spans[1]

    first, second = arrived(7)
    assert 200 < len(first) < 280
    assert second != first, "each span has its own draw"
    assert arrived(7) == (first, second)
    assert arrived(7, before=3) == (first, second)
    assert arrived(8)[0] != first


def datagrams(site: Site, count: int, size: int, pause_s: float = 0.0) -> list[int]:
    """Send numbered datagrams to the server; return the numbers that came out, in the order they came."""
    with enter(site.server):
        server = socket.socket(type=socket.SOCK_DGRAM)
        server.bind((site.host, 0))
    with enter(site.client):
        client = socket.socket(type=socket.SOCK_DGRAM)
    with server, client:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
        for number in range(count):
            client.sendto(number.to_bytes(4) + bytes(size - 4), server.getsockname())
            time.sleep(pause_s)
        server.settimeout(site.link.rtt_ms / 1e3 + 0.5)
        found = []
        with suppress(TimeoutError):
            while True:
                found.append(int.from_bytes(server.recv(MTU)[:4]))
        return found


@NEEDS_LINK
def test_packets_keep_their_order_under_jitter_and_their_delays_vary() -> None:
    with open_site(Link(20.0, jitter_ms=8.0)) as site:
        assert site.joint.joined_by == "relay"
        assert datagrams(site, 1000, 100, pause_s=0.0002) == list(range(1000))
        took = echo_ms(site, 60)
    assert all(20 - 16 <= echo <= 20 + 16 + 3 for echo in took), took
    assert statistics.median(took) == pytest.approx(20, abs=4)
    assert statistics.stdev(took) > 2


@JOINED_BY
def test_a_full_queue_drops_what_comes_and_the_drops_are_counted(joined_by: str) -> None:
    # At 0.25 Mbit/s a packet takes 48 ms, so all 100 have come before the second is sent.
    with open_site(Link(rate_mbit=0.25, queue_packets=20), joined_by=joined_by) as site:
        site.begin()
        found = datagrams(site, 100, UDP_PAYLOAD)
        facts = site.end()
    assert found == list(range(len(found)))
    assert 20 <= len(found) <= 22  # the queue, the one that is being sent, and one that came a little later
    assert facts.there.dropped == 100 - len(found)


@JOINED_BY
def test_an_overflowing_queue_makes_tcp_send_again(joined_by: str) -> None:
    with open_site(Link(20.0, rate_mbit=20.0, queue_packets=30), joined_by=joined_by) as site:
        _, facts = bulk(site, connections=4, settle_s=1.0, span_s=3.0)
    assert facts.back.dropped > 20
    assert facts.retransmitted == pytest.approx(facts.back.dropped, rel=0.1, abs=5)
