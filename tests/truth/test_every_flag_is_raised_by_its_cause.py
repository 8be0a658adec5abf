"""Each flag is provoked for real and raised; where it can be, the same thing done right does not raise it.

Debug builds, steal and swap cannot be provoked on any machine: tests/run/validity feeds their facts.
"""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from velodrome.guest.recipe import filler
from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import FlagKind, Severity
from velodrome.run.drivers.driver import LoadEvent, Target

pytestmark = pytest.mark.measured

Fixture = Callable[..., Any]
LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="seen through Linux' counters")

HOG = "import time\nend = time.monotonic() + 30\nwhile time.monotonic() < end: pass"
REBIND = """
import socket, sys
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
server.bind(("127.0.0.1", int(sys.argv[1]))); server.listen(5)
print(server.getsockname()[1], flush=True); sys.stdin.readline()
"""


def test_a_sound_run_raises_none_that_sets_it_aside(serve: Fixture, observe: Fixture) -> None:
    seen = observe(serve("delays", 20), Load(Closed(10), 3.0, warmup_s=0.2))
    ours = {kind for kind, flag in seen.flags.items() if flag.severity is Severity.INVALID}
    assert ours <= {FlagKind.OTHER_LOAD, FlagKind.CPU_STEAL}  # the machine's, not the server's


def test_failing_answers_are_errors(serve: Fixture, observe: Fixture) -> None:
    seen = observe(serve("fails_sometimes", 10), Load(Closed(4), 0.5))
    flag = seen.flags[FlagKind.ERRORS]
    assert flag.severity is Severity.INVALID
    assert seen.facts.outcomes["bad_status"] == pytest.approx(seen.facts.requests / 10, abs=4)


@LINUX_ONLY
def test_a_tiny_backlog_overflows_and_keeps_connections_out(serve: Fixture, observe: Fixture) -> None:
    seen = observe(serve("one_at_a_time", 3), Load(Closed(20), 3.0, drain_s=0.1))
    overflow = seen.flags[FlagKind.LISTEN_QUEUE_OVERFLOWED]
    assert overflow.facts["limit"] == 3
    assert seen.sampled.queue.peak >= 4
    outside = seen.flags[FlagKind.CONNECTIONS_NEVER_IN]
    assert outside.facts["outside"] == 19
    assert outside.sentence.startswith("19 of 20 connections never got an answer")
    # One of 20 gets all: the k of n in Jain's index.
    assert seen.flags[FlagKind.UNFAIR].facts["jain"] == pytest.approx(1 / 20)


@LINUX_ONLY
def test_connections_in_the_queue_of_a_listener_that_hangs_are_never_in(
    serve: Fixture, observe: Fixture
) -> None:
    """The kernel draws one of two listeners for each: fewer than 12 of 60 for one of them once in a million."""
    seen = observe(serve("shares_its_port", "with-one-that-hangs"), Load(Closed(60), 1.0, drain_s=0.1))
    outside = seen.flags[FlagKind.CONNECTIONS_NEVER_IN]
    assert outside.severity is Severity.INVALID
    assert 12 <= outside.facts["outside"] <= 48
    assert FlagKind.LITTLES_LAW not in seen.flags, (
        "it is said what the server did: that the law is broken says no more"
    )


def test_connections_that_wait_behind_one_that_is_kept_are_counted(serve: Fixture, observe: Fixture) -> None:
    """With a backlog for all of them nothing overflows: only the answers tell."""
    seen = observe(serve("one_at_a_time", 100), Load(Closed(20), 1.0, drain_s=0.1))
    assert seen.flags[FlagKind.CONNECTIONS_NEVER_IN].facts["outside"] == 19
    assert FlagKind.LISTEN_QUEUE_OVERFLOWED not in seen.flags


def test_a_server_that_answers_before_it_reads_is_found_out(serve: Fixture, observe: Fixture) -> None:
    server = serve("answers_early")
    target = Target(server.url, method="POST", body=filler(8_000_000), expect_status=200)
    seen = observe(server, Load(Closed(2), 1.0), target)
    assert seen.flags[FlagKind.ANSWERED_BEFORE_READ].severity is Severity.INVALID


def test_one_worker_that_takes_all_is_noted(serve: Fixture, observe: Fixture) -> None:
    load = Load(Closed(40), 1.5, warmup_s=0.5)
    seen = observe(serve("workers", "one-takes-all"), load, workers=2)
    flag = seen.flags[FlagKind.UNEQUAL_WORKERS]
    assert "One of 2 workers did 100 % of the work" in flag.sentence
    assert FlagKind.IDLE_WORKERS_BURN not in seen.flags


def test_an_idle_worker_that_polls_is_noted(serve: Fixture, observe: Fixture) -> None:
    seen = observe(serve("workers", "one-polls"), Load(Closed(10), 0.5), workers=2)
    flag = seen.flags[FlagKind.IDLE_WORKERS_BURN]
    assert flag.facts["cpus"] > 0.2
    assert flag.facts["processes"] == 1


def test_a_worker_that_dies_is_reported(serve: Fixture, observe: Fixture) -> None:
    seen = observe(serve("workers", "one-dies"), Load(Closed(10), 2.5))
    assert seen.flags[FlagKind.SERVER_DIED].severity is Severity.INVALID
    assert FlagKind.SERVER_RESTARTED not in seen.flags


def test_a_worker_that_is_replaced_is_reported(serve: Fixture, observe: Fixture) -> None:
    seen = observe(serve("workers", "one-restarts"), Load(Closed(10), 2.5))
    assert seen.flags[FlagKind.SERVER_RESTARTED].severity is Severity.INVALID
    assert FlagKind.SERVER_DIED not in seen.flags


def test_a_server_that_dies_ends_the_load_and_is_reported_with_its_exit(
    serve: Fixture, observe: Fixture
) -> None:
    server = serve("workers", "master-dies")

    def trigger(event: LoadEvent) -> None:
        if event.kind == "measuring":
            server.process.stdin.write(b"\n")
            server.process.stdin.flush()

    seen = observe(server, Load(Closed(10), 20.0), on_event=trigger)
    assert seen.flags[FlagKind.SERVER_DIED].sentence == "The server died during the run (exit 7)."
    assert seen.facts.duration_s < 10  # not loaded to the end


def test_a_rate_beyond_the_server_is_not_stationary(serve: Fixture, observe: Fixture) -> None:
    """One connection at a time, 20 ms each: 50/s."""
    load = Load(Open(200, connections=1), 2.0, drain_s=0.1)
    seen = observe(serve("delays", 20), load, wait_ms=20.0)
    assert "of the 200/s offered" in seen.flags[FlagKind.NOT_STATIONARY].sentence
    capped = seen.flags[FlagKind.CAPPED_BY_CONNECTIONS]
    assert capped.severity is Severity.INVALID
    assert "200/s × 20 ms needs 4" in capped.sentence


def test_a_server_that_gets_slower_is_not_stationary(serve: Fixture, observe: Fixture) -> None:
    seen = observe(serve("delays", 20, 20), Load(Closed(10), 6.0))
    flag = seen.flags[FlagKind.NOT_STATIONARY]
    assert flag.severity is Severity.INVALID
    assert "throughput fell" in flag.sentence


def test_few_requests_are_too_short_for_p99(serve: Fixture, observe: Fixture) -> None:
    seen = observe(serve("delays", 50), Load(Closed(5), 1.0))
    assert seen.flags[FlagKind.TOO_SHORT].severity is Severity.NOTE
    seen = observe(serve("delays", 400), Load(Closed(1), 1.0))
    assert seen.flags[FlagKind.TOO_SHORT].severity is Severity.INVALID


@LINUX_ONLY
def test_another_program_that_burns_cpu_is_other_load(serve: Fixture, observe: Fixture) -> None:
    with subprocess.Popen([sys.executable, "-c", HOG]) as hog:
        seen = observe(serve("delays", 20), Load(Closed(5), 2.0))
        hog.kill()
    flag = seen.flags[FlagKind.OTHER_LOAD]
    assert flag.severity is Severity.INVALID
    assert flag.facts["other_cpu_s"] > 0.6


@LINUX_ONLY
def test_a_second_listener_on_the_port_is_a_stranger(observe: Fixture, serve: Fixture) -> None:
    """Both bind with SO_REUSEPORT, as grpcio does; the second is not the server's."""
    server = serve("shares_its_port")
    with subprocess.Popen(
        [sys.executable, "-c", REBIND, str(server.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as stranger:
        assert stranger.stdout is not None
        stranger.stdout.readline()
        seen = observe(server, Load(Closed(2), 0.3, drain_s=0.1))
        stranger.communicate()
    assert f"({stranger.pid})" in seen.flags[FlagKind.FOREIGN_LISTENER].sentence


def test_a_generator_that_is_stopped_for_a_while_has_lagged(serve: Fixture, observe: Fixture) -> None:
    pid: list[int] = []
    stopped: list[bool] = []

    def freeze(event: LoadEvent) -> None:
        if event.kind == "started":
            pid.append(event.facts["pid"])
        if event.kind == "tick" and event.facts["at_s"] > 0.3 and not stopped:
            stopped.append(True)
            freezer = "import os, signal, sys, time; pid = int(sys.argv[1]); os.kill(pid, signal.SIGSTOP); "
            freezer += "time.sleep(0.5); os.kill(pid, signal.SIGCONT)"
            subprocess.run([sys.executable, "-c", freezer, str(pid[0])], check=True)

    seen = observe(serve("delays", 1), Load(Open(500, connections=400), 2.0), on_event=freeze)
    flag = seen.flags[FlagKind.GENERATOR_LAGGED]
    assert flag.severity is Severity.INVALID
    assert flag.facts["lag_ms"] > 100
