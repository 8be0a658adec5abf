"""Fed facts; `tests/cli/test_load_limit.py` provokes them."""

from dataclasses import replace

import pytest

from velodrome.judge.bottleneck import bottleneck
from velodrome.model.bottleneck import Evidence, Limit, ServerUse

IDLE = ServerUse(10.0, 1, 1, 1.0, 0.0, 1.0, 0.0, 2)
BUSY = replace(IDLE, cpu_s=9.8, busiest_cpu_s=9.8)
CROWDED = replace(IDLE, cpu_s=6.0, queued_s=3.7, busiest_cpu_s=6.0, busiest_queued_s=3.7)
ALL_WORKERS = ServerUse(10.0, 5, 8, 19.0, 1.0, 5.0, 0.5, 2)

CLOSED = Evidence(
    open_loop=False,
    span_s=10.0,
    requests=50_000,
    ok=50_000,
    answered_rps=5_000.0,
    due_rps=None,
    at_once=50,
    mean_ms=10.0,
    fastest_ms=0.2,
    threads=1,
    transport="io_uring",
    cpu_share=0.2,
    queued_share=0.001,
    real_time=False,
    awake_share=0.0,
    lag_p99_ms=None,
    lagged=False,
    debug=False,
    capped=False,
    looks=600,
    looks_unsent=0,
    rtt_ms=0.03,
    retransmitted=0,
)
OPEN = replace(CLOSED, open_loop=True, due_rps=5_000.0, lag_p99_ms=0.04)


@pytest.mark.parametrize(
    ("evidence", "at", "sentence"),
    [
        (replace(CLOSED, requests=0, ok=0), Limit.UNKNOWN, "no request was made"),
        (replace(CLOSED, ok=0), Limit.UNKNOWN, "no response was correct"),
        (
            replace(CLOSED, cpu_share=0.98, silent_after_s=3.0),
            Limit.UNKNOWN,
            "The target gave no correct response after 3 s of 10 s",
        ),
        (replace(CLOSED, cpu_share=0.98, cpus=1), Limit.GENERATOR, "server's: load it from another machine."),
        (
            replace(CLOSED, cpu_share=0.98, cpus=2),
            Limit.GENERATOR,
            "use -t 2, or load it from another machine.",
        ),
        (
            replace(CLOSED, cpu_share=0.98, server=BUSY),
            Limit.GENERATOR,
            "near their limit: the generator used 98 % of its core, and the server's busiest thread 98 % of a CPU.",
        ),
        (replace(CLOSED, cpu_share=0.87, server=BUSY), Limit.SERVER, "both near their limit"),
        (replace(CLOSED, cpu_share=0.87, server=CROWDED), Limit.SERVER, "The server was the limit"),
        (replace(OPEN, cpu_share=0.87, server=BUSY), Limit.SCHEDULE, "the schedule had no higher rate"),
        (replace(CLOSED, debug=True), Limit.GENERATOR, "install a release build"),
        (replace(CLOSED, cpu_share=0.98), Limit.GENERATOR, "used 98 % of its core"),
        (replace(CLOSED, cpu_share=0.98, threads=2), Limit.GENERATOR, "each of its 2 cores"),
        (
            replace(CLOSED, cpu_share=0.6, queued_share=0.35),
            Limit.GENERATOR,
            "waited 35 % of the time for a CPU that others had",
        ),
        (
            replace(OPEN, lagged=True, lag_p99_ms=8.0),
            Limit.GENERATOR,
            "one request in a hundred 8.00 ms late",
        ),
        (replace(OPEN, lagged=True, lag_p99_ms=8.0, queued_share=0.2), Limit.GENERATOR, "taskset"),
        (
            replace(OPEN, lagged=True, lag_p99_ms=8.0, cpus=1),
            Limit.GENERATOR,
            "a CPU of its own, or lower the rate.",
        ),
        (OPEN, Limit.SCHEDULE, "the schedule had no higher rate"),
        (replace(OPEN, due_rps=None), Limit.SCHEDULE, "the schedule had no higher rate"),
        (replace(OPEN, answered_rps=4_800.0), Limit.SERVER, "gave 4 800/s"),
        (
            replace(OPEN, answered_rps=4_800.0, scatter=0.03),
            Limit.SCHEDULE,
            "the schedule had no higher rate",
        ),
        (replace(OPEN, capped=True, answered_rps=4_000.0, server=BUSY), Limit.SERVER, "98 % of a CPU"),
        (replace(OPEN, capped=True, answered_rps=4_000.0), Limit.SERVER, "gave 4 000/s"),
        (replace(CLOSED, queued_share=0.6), Limit.GENERATOR, "waited 60 % of the time"),
        (
            replace(OPEN, capped=True, answered_rps=4_000.0, mean_ms=125.0, fastest_ms=100.0),
            Limit.CONNECTIONS,
            "are 625 at once (Little's law)",
        ),
        (
            replace(OPEN, answered_rps=4_100.0),
            Limit.SERVER,
            "5 000/s, and it gave 4 100/s correct responses.",
        ),
        (
            replace(OPEN, answered_rps=4_100.0, server=BUSY),
            Limit.SERVER,
            "its busiest thread had 98 % of a CPU",
        ),
        (
            replace(OPEN, answered_rps=100.0, looks_unsent=400, retransmitted=900),
            Limit.LINK,
            "900 segments had to be sent again",
        ),
        (replace(OPEN, answered_rps=100.0, looks_unsent=400), Limit.SERVER, "was not taken"),
        (replace(CLOSED, server=BUSY), Limit.SERVER, "its busiest thread had 98 % of a CPU."),
        (replace(CLOSED, server=CROWDED), Limit.SERVER, "waited 37 % of the time for a CPU that others had"),
        (replace(CLOSED, server=ALL_WORKERS), Limit.SERVER, "used all of its 2 CPUs"),
        (replace(CLOSED, server=IDLE), Limit.SERVER, "though its busiest thread used only 10 % of a CPU"),
        (CLOSED, Limit.SERVER, "an answer took 50 times as long"),
        (replace(CLOSED, arriving_ms=8.0), Limit.UNKNOWN, "8.00 are from its first byte to its last"),
        (replace(CLOSED, arriving_ms=2.0), Limit.SERVER, "an answer took 50 times as long"),
        (
            replace(CLOSED, arriving_ms=8.0, server=IDLE),
            Limit.SERVER,
            "in pieces, and of the 10.0 ms of an answer, 8.00 are from its first byte to its last.",
        ),
        (replace(CLOSED, mean_ms=48.0, arriving_ms=47.5, server=IDLE), Limit.SERVER, "set TCP_NODELAY."),
        (replace(CLOSED, mean_ms=48.0, arriving_ms=47.5, server=BUSY), Limit.SERVER, "98 % of a CPU."),
        (replace(CLOSED, fastest_ms=5.0), Limit.UNKNOWN, "Use -c 100: if the rate rises"),
        (replace(CLOSED, fastest_ms=9.9), Limit.CONNECTIONS, "50 at once ÷ 10.0 ms (Little's law) = 5 000/s"),
        (replace(CLOSED, fastest_ms=9.9, server=IDLE), Limit.CONNECTIONS, "More of them (-c) would get more"),
        (replace(CLOSED, fastest_ms=9.9, rtt_ms=9.5), Limit.LINK, "its round trip is 9.50 ms of 10.0 ms"),
        (replace(CLOSED, fastest_ms=None), Limit.UNKNOWN, "no latency"),
    ],
)
def test_the_limit_is_found_from_the_facts(evidence: Evidence, at: Limit, sentence: str) -> None:
    found = bottleneck(evidence)
    assert found.at is at, found.sentence
    assert sentence in found.sentence
    assert found.sentence.endswith(".")


def test_what_was_looked_at_is_reported_beside_it() -> None:
    assert bottleneck(replace(OPEN, server=BUSY)).facts == (
        "Generator: 20 % of its core, io_uring, waited 0.10 % of the time for a CPU, lag p99 0.04 ms, "
        "bytes unsent in 0 % of looks at its sockets. "
        "Server: 0.98 of 2 CPUs, its busiest thread 98 % of one, which it waited for 0 % of the time."
    )


def test_what_is_not_known_is_left_out() -> None:
    bare = replace(CLOSED, queued_share=None, looks=0)
    assert bottleneck(bare).facts == "Generator: 20 % of its core, io_uring."
