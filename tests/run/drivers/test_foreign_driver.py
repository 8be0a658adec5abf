"""The tools of this machine against a real server, and tools that misbehave: nothing of these is a result."""

import dataclasses
import os
import shlex
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conformance.booted import booted
from tests.run.drivers import samples

from velodrome.guest import catalog
from velodrome.model.errors import (
    DriverError,
    DriverFailedError,
    DriverMissingError,
    DriverOutputError,
    DriverTimedOutError,
    MostlyFailedError,
    NothingAskedError,
    UnfitLoadError,
    UsageError,
)
from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import UNKNOWN_LATENCY, Placement
from velodrome.run.drivers import driver, wrk
from velodrome.run.drivers.driver import LoadEvent, Target
from velodrome.run.drivers.foreign import ForeignDriver, saturated
from velodrome.run.environments import environment, guest_tree

PLACED = Placement((0,), (), (), True, "nothing")
OVER_HTTP = ("ab", "h2load", "oha", "wrk")
SECOND = Load(Closed(4), duration_s=1)
FEW = Load(Closed(4), duration_s=5, requests=100)
AT_RATE = Load(Open(100, connections=4), duration_s=1)


def on(_: LoadEvent) -> bool:
    return True


@pytest.fixture(scope="module")
def hello(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A real stack, serving."""
    stack, recipe = catalog.stack("uvicorn"), catalog.recipe("hello")
    python = environment.environment_for(stack, None).python
    folder = tmp_path_factory.mktemp("home")
    with booted(stack, recipe, python, guest_tree.export(), "", folder) as running:
        yield Target(running.server.url)


def installed(tool: str) -> None:
    """Skip, loudly, where a tool is not installed; CI installs ab, wrk and ghz."""
    why = next(known.why_not for known in driver.available_drivers() if known.name == tool)
    if why:
        pytest.skip(why)


@pytest.mark.parametrize("tool", OVER_HTTP)
def test_a_tool_loads_a_real_server_for_a_time(tool: str, hello: Target) -> None:
    installed(tool)
    facts = driver.choose_driver(tool, PLACED, 1).run(SECOND, hello, on)
    assert facts.requests == sum(facts.outcomes.values())
    assert facts.ok == facts.requests - facts.outcomes.get("unfinished", 0) > 10
    assert facts.duration_s == pytest.approx(1, abs=0.3)
    assert facts.throughput_rps == pytest.approx(facts.ok / facts.duration_s)
    assert facts.sent.p50
    assert facts.due == facts.lag == UNKNOWN_LATENCY
    assert facts.generator_cpu_s > 0
    assert (facts.driver, facts.driver_command[0].rpartition("/")[2]) == (tool, tool)
    assert facts.driver_version[0].isdigit()


@pytest.fixture(scope="module")
def greeter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A real gRPC server."""
    stack, recipe = catalog.stack("grpc-aio"), catalog.recipe("hello")
    python = environment.environment_for(stack, None).python
    folder = tmp_path_factory.mktemp("home")
    with booted(stack, recipe, python, guest_tree.export(), "", folder) as running:
        yield Target.of_recipe(running.server.url, recipe)


@pytest.mark.parametrize("tool", ["ghz", "h2load"])
@pytest.mark.parametrize("load", [dataclasses.replace(FEW, pace=Closed(1), streams=8), SECOND, AT_RATE])
def test_a_tool_calls_a_real_grpc_server(tool: str, load: Load, greeter: Target) -> None:
    installed(tool)
    facts = driver.choose_driver(tool, PLACED, 1).run(load, greeter, on)
    assert facts.ok == facts.requests - facts.outcomes.get("unfinished", 0) > 10
    assert facts.sent.p50
    assert facts.hdr_sent
    assert facts.blind == (tool == "h2load")
    if load.requests:
        assert facts.requests == load.requests


def test_ghz_uploads_in_pieces_to_a_real_grpc_server(tmp_path: Path) -> None:
    installed("ghz")
    stack, recipe = catalog.stack("grpc-aio"), catalog.recipe("upload-1mb")
    python = environment.environment_for(stack, None).python
    with booted(stack, recipe, python, guest_tree.export(), "", tmp_path / "home") as running:
        target = Target.of_recipe(running.server.url, recipe)
        facts = driver.choose_driver("ghz", PLACED, 1).run(dataclasses.replace(FEW, requests=12), target, on)
    assert facts.outcomes == {"ok": 12}


@pytest.mark.parametrize("tool", ["ab", "h2load", "oha"])
def test_a_tool_sends_so_many_requests(tool: str, hello: Target) -> None:
    installed(tool)
    facts = driver.choose_driver(tool, PLACED, 1).run(FEW, hello, on)
    assert (facts.requests, facts.ok) == (100, 100)


@pytest.mark.parametrize("tool", ["h2load", "oha"])
def test_a_tool_keeps_a_rate(tool: str, hello: Target) -> None:
    installed(tool)
    facts = driver.choose_driver(tool, PLACED, 1).run(AT_RATE, hello, on)
    assert facts.requests == pytest.approx(100, abs=15)
    assert (facts.due != UNKNOWN_LATENCY) == (tool == "oha")


@pytest.mark.parametrize("tool", OVER_HTTP)
def test_a_refused_connection_is_no_result(tool: str) -> None:
    installed(tool)
    with pytest.raises(DriverError):
        driver.choose_driver(tool, PLACED, 1).run(SECOND, Target("http://127.0.0.1:9/"), on)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Put a script where wrk is looked for; what it is called with is written to the file returned."""
    calls = tmp_path / "calls"

    def make(script: str) -> Path:
        path = tmp_path / "wrk"
        path.write_text(
            f"#!/bin/sh\n[ \"$1\" = -v ] && echo 'wrk 4.1.0' && exit 1\n"
            f'echo "$@" >> {shlex.quote(str(calls))}\n{script}\n'
        )
        path.chmod(0o755)
        return calls

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return make


def printing(case: str) -> str:
    return f"cat {shlex.quote(str(samples.FOLDER / case / 'output'))}"


def run(load: Load = SECOND, slack_s: float = 5.0) -> object:
    return ForeignDriver(wrk.DIALECT, slack_s=slack_s).run(load, Target("http://127.0.0.1:9/"), on)


def test_an_exit_status_is_reported_with_the_last_lines(fake: Callable[[str], Path]) -> None:
    fake(f"{printing('wrk/timed')}; echo 'out of sockets' >&2; exit 7")
    with pytest.raises(DriverFailedError, match="wrk ended with exit status 7: out of sockets") as caught:
        run()
    assert caught.value.last_lines == ("out of sockets",)


def test_an_unforeseen_output_is_reported(fake: Callable[[str], Path]) -> None:
    fake("echo 'Requests/sec: about a thousand'")
    with pytest.raises(DriverOutputError, match=r"wrk 4.1.0 printed unexpected output: it does not report"):
        run()


def test_a_run_in_which_most_requests_failed_is_reported(fake: Callable[[str], Path]) -> None:
    fake(printing("wrk/all-failed"))
    with pytest.raises(MostlyFailedError, match=r"requests by wrk failed.*bad_status"):
        run()


def test_a_run_without_any_answer_is_reported(fake: Callable[[str], Path]) -> None:
    fake(printing("wrk/nothing"))
    with pytest.raises(NothingAskedError, match="wrk reports no request in"):
        run()


def test_one_that_hangs_is_killed(fake: Callable[[str], Path]) -> None:
    fake("exec sleep 1000")
    load = dataclasses.replace(SECOND, timeout_s=0.1, drain_s=0)
    with pytest.raises(DriverTimedOutError):
        run(load, slack_s=0.1)


def test_one_that_is_killed_while_it_runs_is_reported(fake: Callable[[str], Path]) -> None:
    fake(f"{printing('wrk/timed')}; kill -KILL $$")
    with pytest.raises(DriverFailedError, match=f"killed by signal {int(signal.SIGKILL)}"):
        run()


def test_it_is_warmed_up_by_an_unmeasured_run_before(fake: Callable[[str], Path]) -> None:
    calls = fake(printing("wrk/timed"))
    seen: list[str] = []

    def watch(event: LoadEvent) -> bool:
        seen.append(event.kind)
        return True

    load = dataclasses.replace(SECOND, warmup_s=0.3)
    facts = ForeignDriver(wrk.DIALECT).run(load, Target("http://127.0.0.1:9/"), watch)
    assert [call.split()[2] for call in calls.read_text().splitlines()] == ["-d1s", "-d1s"]
    assert [kind for kind in seen if kind != "alive"] == ["started", "started", "measuring", "span_ended"]
    assert "warmed up by a run of its own of 1 s" in facts.driver_notes[0]


@pytest.mark.parametrize(("cpu_s", "threads", "used_up"), [(0.91, 1, True), (0.9, 1, False), (1.2, 2, False)])
def test_a_tool_is_saturated_when_it_used_the_cpus_it_can_use(
    cpu_s: float, threads: int, used_up: bool
) -> None:
    run = dataclasses.replace(samples.finished("wrk/timed"), cpu_user_s=cpu_s, cpu_sys_s=0.0, wall_s=1.0)
    assert saturated(run, threads) == used_up


def test_a_load_it_cannot_carry_is_refused_before_anything_is_started(fake: Callable[[str], Path]) -> None:
    calls = fake(printing("wrk/timed"))
    with pytest.raises(UnfitLoadError, match=r"wrk cannot .* requests = 100: "):
        run(FEW)
    assert not calls.exists()


def test_a_tool_that_is_not_there_is_an_error_of_usage(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(DriverMissingError) as caught:
        run()
    assert isinstance(caught.value, UsageError)


def test_every_tool_is_listed_with_a_version_or_a_cure() -> None:
    rows = list(driver.available_drivers())
    assert rows[0].name == "velodrome"
    assert {row.name for row in rows} == set(driver.driver_names())
    assert all(bool(row.version) != ("Install it" in row.why_not) for row in rows)
