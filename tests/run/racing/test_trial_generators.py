"""What makes the load may fail too, or be another program: a result with its reason, and the session goes on."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.run.racing.failing_server import (
    LONGER,
    SHORT,
    failure,
    hostile_lab,
    kinds,
    nothing_left,
    only,
    trials,
)
from tests.run.racing.plain_driver import PlainDriver

from velodrome.model.errors import DriverError
from velodrome.model.load import Closed, Load
from velodrome.model.measurement import (
    Failed,
    FailureKind,
    FlagKind,
    LoadFacts,
    Measurement,
    Placement,
)
from velodrome.run.drivers.driver import Driver, OnEvent, Target, available_drivers, choose_driver
from velodrome.run.lab import Lab
from velodrome.run.racing.session import run_alone


@pytest.fixture(scope="module")
def lab() -> Lab:
    return hostile_lab()


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    nothing_left()


class BrokenDriver(PlainDriver):
    def run(self, load: Load, target: Target, on_event: OnEvent) -> LoadFacts:
        raise DriverError("broken", -11, ("Segmentation fault",))


def test_a_generator_that_crashes_fails_the_trial_and_not_the_session(lab: Lab) -> None:
    lab = replace(lab, driver=lambda name, placed, seed: BrokenDriver())
    results = list(run_alone(trials("answer", SHORT, LONGER), lab))
    assert [result.failure for result in results if isinstance(result, Failed)] == [FailureKind.LOAD] * 2
    assert isinstance(results[0], Failed)
    assert "the load generator broken was killed by signal 11" in results[0].reason


def test_a_load_by_another_generator_is_a_measurement_with_what_that_tells(lab: Lab) -> None:
    if choosing_why_not("wrk"):
        pytest.skip(choosing_why_not("wrk"))
    load = Load(Closed(2), duration_s=1, driver="wrk")
    result = only(list(run_alone(trials("answer", load), replace(lab, driver=choose_driver))))
    assert isinstance(result, Measurement), result
    assert (result.load.driver, result.load.ok) == ("wrk", result.load.requests)
    assert result.cpu_us_per_request is not None
    assert result.load.series == ()
    assert not {FlagKind.LITTLES_LAW, FlagKind.CONNECTIONS_NEVER_IN} & set(kinds(result))
    # Its process is kept apart from other load by its clock, which is read before it is waited for.
    assert result.host.busiest_other != "wrk"


def choosing_why_not(driver: str) -> str:
    return next(known.why_not for known in available_drivers() if known.name == driver)


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (Load(Closed(1), duration_s=1, driver="wrk"), "wrk is not installed"),
        (
            Load(Closed(1), duration_s=1, requests=5, driver="wrk"),
            "requests = 5",
        ),
    ],
)
def test_a_load_that_cannot_be_had_here_is_a_row_and_the_others_go_on(
    lab: Lab, load: Load, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))

    def driver(name: str, placed: Placement, seed: int) -> Driver:
        return choose_driver(name, placed, seed) if name == "wrk" else PlainDriver()

    refused, measured = run_alone(trials("answer", load, SHORT), replace(lab, driver=driver))
    assert isinstance(refused, Failed)
    assert refused.failure is FailureKind.UNAVAILABLE
    assert reason in refused.reason
    assert refused.last_lines == ()
    assert isinstance(measured, Measurement)


def test_a_server_that_dies_under_another_generator_has_died(lab: Lab) -> None:
    if choosing_why_not("wrk"):
        pytest.skip(choosing_why_not("wrk"))
    load = Load(Closed(2), duration_s=30, driver="wrk")
    began = time.monotonic()
    failed = failure(list(run_alone(trials("die-under-load", load), replace(lab, driver=choose_driver))))
    assert failed.failure is FailureKind.DIED
    assert time.monotonic() - began < 15, "the load was not ended with its server"
