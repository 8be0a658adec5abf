"""The driver and a scripted engine process: what it says and how it ends are known."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from tests.run import made
from tests.waiting import wait_until

from velodrome.guest.recipe import Body, ReadBody, Recipe
from velodrome.model.errors import (
    DriverError,
    DriverTimedOutError,
    EngineError,
    LoadRefusedError,
    UsageError,
)
from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import Fairness, LoadFacts
from velodrome.run.drivers import load_document
from velodrome.run.drivers import velodrome as driver_module
from velodrome.run.drivers.driver import LoadEvent, Target
from velodrome.run.drivers.velodrome import VelodromeDriver

LOAD = Load(Closed(4), duration_s=0.2, drain_s=0.0)
DOCUMENT = made.LOAD_DOCUMENT
TARGET = Target("http://127.0.0.1:1/", body=b"up", expect_body=b"down")
PROLOGUE = """
import json, os, signal, sys, time
source = sys.stdin.buffer
sizes = [max(0, int(size)) for size in source.readline().split()]
spec, body, expected = (source.read(size) for size in sizes)
def say(**facts): print(json.dumps(facts), flush=True)
"""

Script = Callable[[str], None]
Seen = list[LoadEvent]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Put a program in the place of the engine process."""

    def write(program: str) -> None:
        (tmp_path / "scripted_engine.py").write_text(PROLOGUE + program)

    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(driver_module, "MODULE", "scripted_engine")
    return write


def run(
    seen: Seen | None = None, keep_going: bool = True, slack_s: float = 10.0, target: Target = TARGET
) -> LoadFacts:
    def on_event(event: LoadEvent) -> bool:
        if seen is not None:
            seen.append(event)
        return keep_going

    return VelodromeDriver(slack_s=slack_s).run(LOAD, target, on_event)


REPORT = f"print('document'); print({json.dumps(DOCUMENT)!r})"


def test_events_come_live_and_the_report_at_the_end(script: Script) -> None:
    script(f"""
say(event="measuring", monotonic_ns=time.monotonic_ns())
time.sleep(0.3)
say(event="span_ended", monotonic_ns=time.monotonic_ns())
{REPORT}
""")
    arrived: list[float] = []
    seen: Seen = []

    def on_event(event: LoadEvent) -> bool:
        seen.append(event)
        arrived.append(time.monotonic())
        return True

    facts = VelodromeDriver().run(LOAD, TARGET, on_event)
    assert [event.kind for event in seen] == ["started", "measuring", "span_ended"]
    assert arrived[2] - arrived[1] > 0.2  # the first did not wait for the second
    assert (facts.requests, facts.ok, facts.outcomes["reset"]) == (10, 9, 1)
    assert (facts.due.p99, facts.due.p99_9, facts.sent.max) == (4.0, None, 5.0)
    assert facts.series[0].in_flight == 4
    assert facts.examples == ("reset: connection reset",)


@pytest.mark.parametrize(("extra", "resent"), [({}, None), ({"resent": 3}, 3)])
def test_requests_sent_again_are_read_and_of_an_engine_that_does_not_tell_them_unknown(
    extra: dict[str, int], resent: int | None
) -> None:
    assert load_document.facts_of({**DOCUMENT, **extra}).resent == resent


def test_the_engine_gets_the_load_the_body_and_the_right_answer(script: Script) -> None:
    script(
        f"say(event='tick', spec=json.loads(spec), body=body.decode(), expected=expected.decode())\n{REPORT}"
    )
    seen: Seen = []
    run(seen)
    got = seen[1].facts
    assert (got["body"], got["expected"]) == ("up", "down")
    assert (got["spec"]["connections"], got["spec"].get("rate"), got["spec"]["timeout_s"]) == (4, None, 10.0)


def test_a_body_larger_than_any_pipe_arrives_whole(script: Script) -> None:
    script(f"say(event='tick', size=len(body))\n{REPORT}")
    recipe = Recipe("upload", "reads", (ReadBody(), Body(10)), method="POST", upload_bytes=1 << 20)
    target = Target.of_recipe("http://127.0.0.1:1/", recipe)
    seen: Seen = []
    run(seen, target=target)
    assert seen[1].facts["size"] == 1 << 20
    assert (target.method, target.expect_status, target.expect_body) == ("POST", 200, recipe.answer())


def test_an_open_load_is_given_by_rate_and_arrivals() -> None:
    pace = Open(500.0, arrivals="poisson", connections=300)
    spec = VelodromeDriver(threads=2, transport="epoll", seed=7).spec(Load(pace, 3.0, warmup_s=1.0), TARGET)
    assert (spec.rate, spec.arrivals, spec.connections, spec.seed) == (500.0, "poisson", 300, 7)
    assert (spec.threads, spec.transport, spec.warmup_s, spec.duration_s) == (2, "epoll", 1.0, 3.0)


def test_an_engine_killed_by_a_signal_is_an_error_and_no_result(script: Script) -> None:
    script("say(event='tick'); os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(DriverError, match="was killed by signal 9"):
        run()


def test_an_engine_that_fails_shows_its_last_lines(script: Script) -> None:
    script("raise RuntimeError('boom')")
    with pytest.raises(DriverError, match="exit status 1") as caught:
        run()
    assert caught.value.last_lines[-1] == "RuntimeError: boom"


def test_a_report_from_an_engine_that_then_failed_is_not_believed(script: Script) -> None:
    script(f"{REPORT}\nsys.stdout.flush(); sys.exit(3)")
    with pytest.raises(DriverError, match="exit status 3"):
        run()


def test_an_engine_that_ends_without_a_report_left_no_result(script: Script) -> None:
    script("say(event='tick')")
    with pytest.raises(DriverError, match="left no result"):
        run()


@pytest.mark.parametrize("document", ["{}", "nonsense", '{"schema": "velodrome/load/2"}'])
def test_a_report_of_another_shape_is_no_result(script: Script, document: str) -> None:
    script(f"print('document'); print({document!r})")
    with pytest.raises(DriverError, match="cannot be read"):
        run()


def test_an_engine_that_hangs_is_stopped_at_its_deadline(script: Script) -> None:
    script("say(event='tick'); signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)")
    seen: Seen = []
    with pytest.raises(DriverTimedOutError, match=r"still running 0\.3 s after"):
        run(seen, slack_s=0.3)
    assert not psutil.pid_exists(seen[0].facts["pid"])


@pytest.mark.parametrize(
    ("kind", "error"),
    [("ValueError", UsageError), ("PermissionError", LoadRefusedError), ("OSError", EngineError)],
)
def test_a_load_the_engine_refuses_is_reported_in_its_words(
    script: Script, kind: str, error: type[Exception]
) -> None:
    script(f"print('error {kind}'); print('rate: 0 is no rate'); sys.stdout.flush(); sys.exit(2)")
    with pytest.raises(error, match=r"^rate: 0 is no rate$"):
        run()


def test_a_load_ended_early_returns_what_was_measured(script: Script) -> None:
    script(f"""
say(event="tick")
source.read()
{REPORT}
""")
    assert run(keep_going=False).requests == 10


def test_when_the_listener_raises_the_engine_does_not_go_on(script: Script) -> None:
    script("while True: say(event='tick'); time.sleep(0.01)")
    pids: list[int] = []

    def on_event(event: LoadEvent) -> bool:
        pids.extend([event.facts["pid"]] if event.kind == "started" else [])
        if event.kind == "tick":
            raise KeyboardInterrupt
        return True

    with pytest.raises(KeyboardInterrupt):
        VelodromeDriver().run(LOAD, TARGET, on_event)
    assert not psutil.pid_exists(pids[0])


WARDED = """
from velodrome.run.supervision import python
child = python.start_own("velodrome_test_sleeper")
print(child.pid, flush=True)
import time; time.sleep(60)
"""
SLEEPER = "import sys; sys.stdin.read()"


def test_a_process_of_ours_ends_when_velodrome_is_killed(tmp_path: Path) -> None:
    (tmp_path / "velodrome_test_sleeper.py").write_text(SLEEPER)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", WARDED], stdout=subprocess.PIPE, env=environment) as host:
        assert host.stdout is not None
        pid = int(host.stdout.readline())
        assert psutil.pid_exists(pid)
        host.send_signal(signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(pid))


def test_documents_tell_how_even_connections_were_served_and_older_ones_do_not() -> None:
    row = {"connections": 4, "answers": 9, "least": 1, "most": 4, "jain": 0.8, "jain_short_term": None}
    row |= {"mean_ms": 2.0, "median_connection_ms": 3.0}
    assert load_document.facts_of({**DOCUMENT, "fairness": row}).fairness == Fairness(
        4, 9, 1, 4, 0.8, None, 2.0, 3.0
    )
    assert load_document.facts_of({**DOCUMENT, "fairness": None}).fairness is None
    assert load_document.facts_of(DOCUMENT).fairness is None
