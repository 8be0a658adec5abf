"""The engine loads its own third party, whose latencies are asked for by name."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import FlagKind, LoadFacts, Severity, UpstreamFacts
from velodrome.run import third_party
from velodrome.run.drivers.driver import LoadEvent, Target
from velodrome.run.drivers.velodrome import VelodromeDriver
from velodrome.run.measuring.sampler import Sampler
from velodrome.run.third_party import Upstream
from velodrome.run.validity import Evidence, flags

pytestmark = pytest.mark.measured

FREEZE = """
import os, signal, sys, time
pid = int(sys.argv[1])
os.kill(pid, signal.SIGSTOP); time.sleep(float(sys.argv[2])); os.kill(pid, signal.SIGCONT)
"""


def load_it(
    third: Upstream,
    load: Load,
    on_event: Callable[[LoadEvent], object] = lambda _: None,
    wait_ms: float = 0.0,
) -> tuple[LoadFacts, UpstreamFacts, dict[FlagKind, Any]]:
    sampler = Sampler(third.pid, third.port, load.duration_s)
    upstream_facts: list[UpstreamFacts] = []

    def on(event: LoadEvent) -> bool:
        sampler.on(event)
        on_event(event)
        if event.kind == "measuring":
            third.begin()
        if event.kind == "span_ended":
            upstream_facts.append(third.end())
        return True

    with sampler:
        facts = VelodromeDriver().run(load, Target(third.url + "/", expect_status=200), on)
    evidence = Evidence(
        load, facts, sampler.result(0.0), os.cpu_count() or 1, upstream=upstream_facts[0], wait_ms=wait_ms
    )
    return facts, upstream_facts[0], {flag.kind: flag for flag in flags(evidence)}


def test_a_constant_latency_is_the_median_that_comes_out() -> None:
    with third_party.start(latency="50ms") as third:
        facts, _, _ = load_it(third, Load(Closed(20), 2.0, warmup_s=0.2))
    assert facts.sent.p50 is not None
    assert 50.0 <= facts.sent.p50 < 60
    assert 250 < facts.throughput_rps <= 400


def test_a_uniform_latency_has_its_percentiles() -> None:
    with third_party.start(latency="uniform(20ms,120ms)") as third:
        facts, _, _ = load_it(third, Load(Open(400, connections=200), 3.0))
    assert facts.requests == 1200
    # Of 1,200 draws, three standard errors are 4.3 ms at the median and 2.6 ms at p90; lateness only adds.
    assert facts.sent.p50 == pytest.approx(70, abs=12)
    assert facts.sent.p90 == pytest.approx(110, abs=12)
    assert facts.sent.max is not None
    assert facts.sent.max >= 115


def test_as_many_requests_arrive_as_were_sent() -> None:
    with third_party.start(latency="5ms") as third:
        facts, upstream_facts, _ = load_it(third, Load(Open(300, connections=100), 1.0))
    assert facts.requests == facts.ok == 300
    assert upstream_facts.requests == pytest.approx(300, abs=5)  # the last ones may arrive as the span ends


def test_errors_of_the_third_party_are_counted_as_such() -> None:
    with third_party.start(errors=0.2) as third:
        facts, _, found = load_it(third, Load(Open(500, connections=50), 1.0))
    assert facts.outcomes["bad_status"] == pytest.approx(100, abs=40)  # four standard deviations
    assert FlagKind.ERRORS in found


def test_a_third_party_that_was_held_up_is_late() -> None:
    with third_party.start(latency="20ms") as third:
        frozen: list[bool] = []

        def freeze(event: LoadEvent) -> None:
            if event.kind == "tick" and event.facts["at_s"] > 0.3 and not frozen:
                frozen.append(True)
                subprocess.run([sys.executable, "-c", FREEZE, str(third.pid), "0.5"], check=True)

        _, upstream_facts, found = load_it(third, Load(Closed(20), 1.5), freeze, wait_ms=20.0)
    assert upstream_facts.late_p99_ms is not None
    assert upstream_facts.late_p99_ms > 100
    assert FlagKind.UPSTREAM_LATE in found


def test_a_rate_that_no_generator_can_send_is_limited_by_the_generator() -> None:
    """Or by others on this machine, and then that is what must be reported."""
    with third_party.start() as third:
        _, _, found = load_it(third, Load(Open(3_000_000, connections=100), 1.0, drain_s=0.1))
    flag = found.get(FlagKind.GENERATOR_SATURATED) or found.get(FlagKind.OTHER_LOAD)
    assert flag is not None
    assert flag.severity is Severity.INVALID


def test_a_stall_shows_in_every_latency_that_met_it() -> None:
    with third_party.start(latency="1ms", stall={"every_s": 1.0, "for_s": 0.5}) as third:
        facts, _, _ = load_it(third, Load(Open(200, connections=300), 3.0, drain_s=3.0))
    assert facts.requests == facts.ok == 600
    assert facts.due.max is not None
    assert facts.due.max > 350
    assert facts.due.p50 is not None


def test_the_engine_ends_with_the_one_who_asked_for_the_load() -> None:
    program = """
from velodrome.run.drivers.velodrome import VelodromeDriver
from velodrome.run.drivers.driver import Target
from velodrome.model.load import Closed, Load
import sys
def on_event(event):
    print(event.facts.get("pid"), flush=True)
    return True
VelodromeDriver().run(Load(Closed(5), 60.0), Target(sys.argv[1]), on_event)
"""
    with (
        third_party.start(latency="5ms") as third,
        subprocess.Popen([sys.executable, "-c", program, third.url + "/"], stdout=subprocess.PIPE) as host,
    ):
        assert host.stdout is not None
        engine = psutil.Process(int(host.stdout.readline()))
        host.send_signal(signal.SIGKILL)
        assert psutil.wait_procs([engine], timeout=10)[1] == []
