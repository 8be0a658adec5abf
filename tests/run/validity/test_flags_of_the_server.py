from collections.abc import Callable
from dataclasses import replace

import pytest

from velodrome.model.load import Closed
from velodrome.model.measurement import Flag, FlagKind, QueueFacts, ServerFacts, Severity, WorkerUse
from velodrome.run.measuring.kernel import Listener
from velodrome.run.measuring.sampler import Rest

Flags = Callable[..., dict[FlagKind, Flag]]


def served_by(*workers: WorkerUse) -> ServerFacts:
    server = ServerFacts(9.0, 6.0, 3.0, 1, 1, 1, 1, 1, 1, workers=(), samples=(), boot_s=0.1)
    return replace(server, workers=workers)


def test_a_dead_server_is_reported_with_its_signal(raised: Flags) -> None:
    flag = raised(sampled={"root_alive": False, "gone": (100, 101, 102)}, exit_status=-9)[
        FlagKind.SERVER_DIED
    ]
    assert flag.severity is Severity.INVALID
    assert flag.sentence == "The server died during the run (signal 9)."


def test_a_worker_that_died_and_was_not_replaced(raised: Flags) -> None:
    found = raised(sampled={"gone": (101,)})
    assert "1 of the server's processes died" in found[FlagKind.SERVER_DIED].sentence
    assert FlagKind.SERVER_RESTARTED not in found


def test_a_worker_that_was_replaced(raised: Flags) -> None:
    found = raised(sampled={"gone": (101,), "came": (103,)})
    assert found[FlagKind.SERVER_RESTARTED].sentence == "1 worker was replaced during the run."
    assert FlagKind.SERVER_DIED not in found


def test_a_process_for_each_connection_is_no_restart(raised: Flags) -> None:
    found = raised(sampled={"came": tuple(range(200, 240))})
    assert not found.keys() & {FlagKind.SERVER_RESTARTED, FlagKind.SERVER_DIED}


def test_a_stranger_on_the_port_is_named(raised: Flags) -> None:
    flag = raised(sampled={"foreign": (Listener("0.0.0.0", 4242, "python3"),)})[FlagKind.FOREIGN_LISTENER]
    assert flag.severity is Severity.INVALID
    assert "python3 (4242)" in flag.sentence


def test_an_overflowing_listen_queue_is_reported_with_its_size(raised: Flags) -> None:
    flag = raised(sampled={"queue": QueueFacts(6, 5, 37, 37)})[FlagKind.LISTEN_QUEUE_OVERFLOWED]
    assert flag.severity is Severity.INVALID
    assert "listen queue (it holds 5) overflowed 37 times" in flag.sentence


def test_a_queue_that_cannot_be_seen_raises_nothing(raised: Flags) -> None:
    found = raised(sampled={"queue": QueueFacts(None, None, None, None)})
    assert FlagKind.LISTEN_QUEUE_OVERFLOWED not in found


def test_a_server_that_polls_with_nothing_to_do_is_noted(raised: Flags) -> None:
    flag = raised(sampled={"rest": Rest(100, (100, 101, 102), 1.0, {101: 1.0})})[FlagKind.IDLE_WORKERS_BURN]
    assert flag.severity is Severity.NOTE
    assert "used 100 % of a CPU (1 of its 3 processes)" in flag.sentence


def test_a_worker_without_connections_that_uses_cpu_is_noted(raised: Flags) -> None:
    workers = (WorkerUse(100, 0.0, 0), WorkerUse(101, 6.0, 40), WorkerUse(102, 3.0, 0))
    flag = raised(sampled={"server": served_by(*workers)})[FlagKind.IDLE_WORKERS_BURN]
    assert "1 of 3 processes had no connection and still used 30 % of a CPU" in flag.sentence


def test_the_master_may_work_without_a_connection(raised: Flags) -> None:
    workers = (WorkerUse(100, 3.0, 0), WorkerUse(101, 6.0, 20), WorkerUse(102, 6.0, 20))
    assert FlagKind.IDLE_WORKERS_BURN not in raised(sampled={"server": served_by(*workers)})


def test_a_connection_for_each_request_is_on_nobody_at_mid_span(raised: Flags) -> None:
    workers = (WorkerUse(101, 6.0, 1), WorkerUse(102, 6.0, 0))
    found = raised(sampled={"server": served_by(*workers)}, keepalive=False)
    assert FlagKind.IDLE_WORKERS_BURN not in found
    closed_by_the_server = raised({"connections_reopened": 39_000}, {"server": served_by(*workers)})
    assert FlagKind.IDLE_WORKERS_BURN not in closed_by_the_server


@pytest.mark.parametrize(
    ("cpu", "configured", "connections", "raises"),
    [
        ((4.0, 6.0), 2, 40, False),
        ((1.5, 8.5), 2, 40, True),
        ((0.0, 9.0), 2, 40, True),
        ((1.5, 8.5), 2, 8, False),  # eight connections fall unequally by chance
        ((0.0, 9.0), None, 40, False),  # nobody set how many workers there are
        ((0.01, 0.05), 2, 40, False),  # next to no work at all
        ((2.0, 2.0, 2.0, 6.0), 4, 40, True),
    ],
)
def test_one_worker_that_does_most_is_noted(
    raised: Flags, cpu: tuple[float, ...], configured: int | None, connections: int, raises: bool
) -> None:
    master = WorkerUse(100, 0.0, 0)
    workers = (master, *(WorkerUse(101 + n, cpu_s, 1) for n, cpu_s in enumerate(cpu)))
    found = raised(sampled={"server": served_by(*workers)}, workers=configured, pace=Closed(connections))
    assert (FlagKind.UNEQUAL_WORKERS in found) is raises


def test_workers_that_did_nothing_are_counted(raised: Flags) -> None:
    workers = (WorkerUse(100, 0.0, 0), WorkerUse(101, 9.0, 40), WorkerUse(102, 0.0, 0))
    sentence = raised(sampled={"server": served_by(*workers)}, workers=2)[FlagKind.UNEQUAL_WORKERS].sentence
    assert (
        "One of 2 workers did 100 % of the work (an equal share is 50 %); 1 did next to nothing." in sentence
    )
