"""A trial whose generator and server have a link between them is a trial like any other."""

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.run import made
from tests.run.link.possible import NEEDS_LINK
from tests.run.racing import short_race

from velodrome.model.errors import LinkRefusedError
from velodrome.model.load import Closed, Link, Load
from velodrome.model.measurement import Failed, FailureKind, LoadFacts, Measurement, Placement
from velodrome.model.results import Result
from velodrome.model.trial import Contestant, Session, Trial
from velodrome.run import link as relay
from velodrome.run import servers
from velodrome.run.drivers.driver import Driver, LoadEvent, OnEvent, Target, choose_driver
from velodrome.run.lab import Lab
from velodrome.run.machine import netlink
from velodrome.run.racing import opening
from velodrome.run.racing.plan import plan_of
from velodrome.run.racing.session import run_alone

FAR = Link(20.0)
SHORT = Load(Closed(2), duration_s=0.5)


@pytest.fixture(scope="module")
def lab() -> Lab:
    return replace(short_race.lab(choose_driver), start_seconds=5.0)


def trial(does: str = "answer", link: Link | None = FAR) -> Trial:
    contestant = Contestant("hostile", {"does": does})
    return replace(made.trial(load=SHORT), contestant=contestant, link=link)


def only(results: Iterator[Result]) -> Result:
    (result,) = results
    return result


@NEEDS_LINK
def test_a_link_adds_its_round_trip_and_tells_of_itself(lab: Lab) -> None:
    near = only(run_alone(Session((trial(link=None),)), lab))
    far = only(run_alone(Session((trial(),)), lab))
    assert isinstance(near, Measurement)
    assert isinstance(far, Measurement)
    assert near.link is None
    assert far.load.due.p50 is not None
    assert far.load.due.p50 >= 20.0  # how close it is is shown in tests/truth, on a machine that is not busy
    assert far.load.outcomes["ok"] == far.load.requests
    link = far.link
    assert link is not None
    assert link.there.packets > far.load.ok / 2  # counted from the beginning of the span
    assert link.back.packets > far.load.ok / 2
    assert link.rtt_ms >= 20.0
    assert "with cubic at both ends" in far.placement.notes[-1]
    assert far.queue.limit == 1024  # which only those in the server's network can see
    assert far.command[3] == "198.18.0.2"


@NEEDS_LINK
def test_the_server_is_in_a_network_of_its_own_and_is_watched_there(lab: Lab) -> None:
    seen: list[object] = []

    class Looking:
        name = "looking"

        def __init__(self, placed: Placement, seed: int) -> None:
            self.driver = choose_driver("velodrome", placed, seed)

        def run(self, load: Load, target: Target, on_event: OnEvent) -> LoadFacts:
            def on(event: LoadEvent) -> bool:
                if event.kind == "measuring":
                    port = int(target.url.rsplit(":", 1)[1].rstrip("/"))
                    seen.append(netlink.listening(port))  # this thread is at the client's end
                return on_event(event)

            return self.driver.run(load, target, on)

    def looking(name: str, placed: Placement, seed: int) -> Driver:
        return Looking(placed, seed)

    longer = replace(trial(), load=replace(SHORT, duration_s=1.3))
    result = only(run_alone(Session((longer,)), replace(lab, driver=looking)))
    assert isinstance(result, Measurement)
    assert seen == [()]
    assert [worker.connections for worker in result.server.workers] == [2]
    assert [sample.listen_queue for sample in result.server.samples][:1] == [0]
    assert servers.fresh_port() > 0  # and this thread is back where ports are the machine's


@NEEDS_LINK
def test_a_relay_that_dies_under_load_is_a_failure_with_its_reason(lab: Lab) -> None:
    class Killing:
        name = "killing"

        def __init__(self, placed: Placement, seed: int) -> None:
            self.driver = choose_driver("velodrome", placed, seed)

        def run(self, load: Load, target: Target, on_event: OnEvent) -> LoadFacts:
            def on(event: LoadEvent) -> bool:
                going = on_event(event)
                if event.kind == "measuring":
                    os.kill(relay_process(), signal.SIGKILL)
                return going

            return self.driver.run(replace(load, timeout_s=0.3), target, on)

    def killing(name: str, placed: Placement, seed: int) -> Driver:
        return Killing(placed, seed)

    jittery = trial(link=replace(FAR, jitter_ms=1.0))  # which is the relay's, also where the kernel has netem
    failed = only(run_alone(Session((jittery,)), replace(lab, driver=killing)))
    assert isinstance(failed, Failed)
    assert failed.failure is FailureKind.LOAD
    assert "rtt20ms-jitter1ms" in failed.reason
    assert "SIGKILL" in failed.reason


def relay_process() -> int:
    """Return the process of the only relay that is a child of ours."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        children = file.read().split()
    (found,) = [pid for pid in children if b"relay_process" in _command_line(pid)]
    return int(found)


def _command_line(pid: str) -> bytes:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


@pytest.mark.skipif(sys.platform != "linux", reason="says at once that only Linux has links")
def test_where_no_link_can_be_had_its_trials_fail_and_a_race_of_nothing_else_is_refused(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "TUN", "/dev/net/nonesuch")
    near, far = (Session((trial(link=link),)) for link in (None, Link(20.0, jitter_ms=1.0)))
    failed = only(run_alone(far, lab))
    assert isinstance(failed, Failed)
    assert failed.failure is FailureKind.UNAVAILABLE
    assert failed.reason.startswith("a link cannot be created here: ")
    assert failed.reason.endswith("Or run without a link")
    with pytest.raises(LinkRefusedError):
        opening.refuse_impossible(plan_of("far", [far], lab))
    opening.refuse_impossible(plan_of("both", [near, far], lab))
