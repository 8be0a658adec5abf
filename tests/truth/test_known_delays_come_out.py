"""Servers with known delays and stalls: bounds below are exact, those above leave room for a busy machine."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from velodrome.model.load import Closed, Load, Open
from velodrome.run.drivers.driver import LoadEvent

pytestmark = pytest.mark.measured

Fixture = Callable[..., Any]


def test_a_server_that_takes_50_ms_is_seen_to_take_50_ms(serve: Fixture, observe: Fixture) -> None:
    seen = observe(serve("delays", 50), Load(Closed(10), 2.0, warmup_s=0.2))
    for latency in (seen.facts.sent, seen.facts.due):
        assert latency.p50 is not None
        assert 49.9 <= latency.p50 < 65
    # Little's law from outside: 10 connections, 50 ms each.
    assert 130 < seen.facts.throughput_rps <= 201
    assert (
        seen.facts.outcomes["ok"] == seen.facts.ok == seen.facts.requests - seen.facts.outcomes["unfinished"]
    )
    assert seen.facts.connections_answered == 10


def test_an_open_loop_keeps_its_rate_whatever_the_server_takes(serve: Fixture, observe: Fixture) -> None:
    seen = observe(serve("delays", 100), Load(Open(200), 2.0))
    assert seen.facts.requests == 400  # due times are planned, none is skipped
    assert seen.facts.ok == 400
    assert seen.facts.sent.p50 is not None
    assert 99.9 <= seen.facts.sent.p50 < 130
    assert seen.facts.mean_in_flight == pytest.approx(20, abs=6)


def test_a_frozen_server_shows_in_latency_from_due_and_not_from_sent(
    serve: Fixture, observe: Fixture
) -> None:
    server = serve("delays", 0)
    thaw = threading.Timer(1.0, os.kill, (server.process.pid, signal.SIGCONT))

    def freeze(event: LoadEvent) -> None:
        if (
            event.kind == "tick"
            and event.facts["at_s"] > 0.5
            and not thaw.is_alive()
            and not thaw.finished.is_set()
        ):
            os.kill(server.process.pid, signal.SIGSTOP)
            thaw.start()

    # One connection: while the server is frozen one request is in flight and the others wait for their turn.
    seen = observe(server, Load(Open(100, connections=1), 4.0, drain_s=5.0), on_event=freeze)
    thaw.cancel()
    assert seen.facts.requests == seen.facts.ok == 400
    # A quarter of all requests fell due while it was frozen: 25 % waited, evenly from 0 to 1,000 ms.
    assert seen.facts.due.p90 > 300
    assert seen.facts.due.max > 900
    # Of those sent, a single one did.
    assert seen.facts.sent.p90 < 100
    assert seen.facts.sent.max > 900
    assert seen.facts.due.p99 > 5 * seen.facts.sent.p99


def test_what_is_in_flight_at_the_end_is_counted(serve: Fixture, observe: Fixture) -> None:
    seen = observe(serve("delays", 3000), Load(Closed(8), 0.5, drain_s=0.2))
    assert seen.facts.outcomes["unfinished"] == 8
    assert seen.facts.ok == 0
