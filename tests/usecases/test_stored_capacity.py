"""A search for a capacity is made of what it stored: judged again it says the same, killed at any load it goes on."""

import json
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from tests.judge import made, queued

from velodrome.guest import catalog
from velodrome.judge.search.holding import Demands
from velodrome.judge.search.load_levels import BOOTS, SHARES, TIMES
from velodrome.model import results as texts
from velodrome.model.condition import read
from velodrome.model.errors import ResultsError
from velodrome.model.load import Open
from velodrome.model.measurement import Failed, FailureKind, Purpose
from velodrome.model.results import Header, Result, Results
from velodrome.model.search import Ending, Knee, RateCapacity
from velodrome.model.trial import Contestant, Trial
from velodrome.report import searches
from velodrome.run.lab import Lab
from velodrome.run.racing.session import ImpossibleError
from velodrome.usecases import bench
from velodrome.usecases.bench import Bench, trial_of
from velodrome.usecases.capacity import Search, judge_stored, run_search
from velodrome.usecases.events import Events
from velodrome.usecases.recording import NotStoredError, Record, header

STACKS = catalog.stacks()
SERVICE_S = 0.005
EDGE = 0.77349 / SERVICE_S
"""Of M/D/1 with a p99 of ten service times (`benchmarks/queues.py` works it out)."""
TRIAL = trial_of("capacity", made.HELLO, Contestant("uvicorn"), made.trial("uvicorn").limits)
SEARCH = Search(TRIAL, Demands(must=(read("p99 < 50ms"),)), seconds=1.0)
CLOSED = replace(SEARCH, demands=Demands(), closed=True)


class KilledError(BaseException):
    """The process is gone: nothing that it has not stored is left."""


@dataclass
class World:
    """Servers that differ by 3 % from boot to boot, and answer one request after the other; no process is started."""

    last: int = 10_000
    """Loads until it is killed."""
    refuses: int = 0
    """The boot that does not start."""
    spoils: Callable[[int], bool] = lambda _: False
    """Which loads, counted from 1, others disturb."""
    loads: int = 0
    boots: int = 0
    record: Record = None  # type: ignore[assignment]

    def boot(self, *_plan: object) -> SimpleNamespace:
        self.boots += 1
        if self.boots == self.refuses:
            raise ImpossibleError(FailureKind.START, "its process ended before it answered")
        number = self.record._boot
        server = SimpleNamespace(exit=lambda: None)
        return SimpleNamespace(server=server, placed=SimpleNamespace(shared=True), wrong="", number=number)

    def measure(self, trial: Trial, booted: SimpleNamespace, *_rest: object) -> Result:
        if self.loads == self.last:
            raise KilledError
        self.loads += 1
        pace = math.exp(0.03 * (booted.number % 3 - 1))
        seed = zlib.crc32(f"{trial.key} {booted.number}".encode())
        found = queued.measured(trial, SERVICE_S / pace, seed)
        if self.spoils(self.loads):
            return replace(found, flags=(made.STOLEN,))
        return found


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Callable[..., World]:
    """Makes a world, and lets benches run in it."""

    def made_so(**facts: Any) -> World:
        found = World(**facts)
        monkeypatch.setattr(bench, "boot", found.boot)
        monkeypatch.setattr(bench, "measure", found.measure)
        monkeypatch.setattr(bench, "plan_session", lambda *_: None)
        monkeypatch.setattr(bench, "wait_for_recovery", lambda *_: True)
        monkeypatch.setattr(bench, "PAUSE_S", 0.0)
        return found

    return made_so


def begun(search: Search) -> Header:
    return header(search.trial, search.sought(1), "Capacity", (search.trial.contestant,))


def run(world: World, search: Search = SEARCH, before: Results | None = None) -> RateCapacity | Knee:
    world.record = Record(before=before)
    lab: Lab = SimpleNamespace(stacks=STACKS)  # type: ignore[assignment]
    return run_search(search, lab, Events(), world.record)


def killed(world: World, search: Search = SEARCH, before: Results | None = None) -> Results:
    """Run it until it is killed, and return what is on the disk."""
    with pytest.raises(KilledError):
        run(world, search, before)
    return stored(world.record, search)


def stored(record: Record, search: Search = SEARCH) -> Results:
    """What was measured, as it is read from the disk."""
    of = begun(search)
    lines = [texts.dump_header(of), *(texts.dump(result, of.study) for result in record.results)]
    return texts.parse("".join(f"{line}\n" for line in lines).encode())


def purposes(results: Results) -> list[Purpose]:
    return [trial.step.purpose for trial in results.trials if trial.step is not None]


def test_the_capacity_of_a_queue_is_found_claimed_and_judged_again_with_the_same_answer(
    world: Callable[..., World],
) -> None:
    first = world()
    found = run(first)
    assert isinstance(found, RateCapacity)
    assert found.ending is Ending.CONVERGED
    assert found.found.interval is not None
    assert found.found.interval.low < EDGE < found.found.interval.high
    assert found.found.claim is not None
    assert found.found.claim.proven
    assert found.trials == first.loads
    again = judge_stored(stored(first.record), STACKS)
    assert again.found == found
    assert first.boots == found.cold_starts


def test_each_load_is_stored_with_its_boot_and_why_it_was_made(world: Callable[..., World]) -> None:
    first = world()
    run(first)
    of = [result.step for result in first.record.results if result.step is not None]
    assert [step.number for step in of] == [*range(1, len(of) + 1)]
    assert {step.purpose for step in of} == {
        *(Purpose.ALONE, Purpose.CLOSED, Purpose.RATE, Purpose.PROOF, Purpose.LATENCY, Purpose.OVERLOAD)
    }
    of_proofs = {step.boot for step in of if step.purpose is Purpose.PROOF}
    assert of_proofs.isdisjoint({step.boot for step in of if step.purpose is Purpose.RATE})
    for purpose, count in ((Purpose.LATENCY, BOOTS), (Purpose.OVERLOAD, len(TIMES))):
        assert len({step.boot for step in of if step.purpose is purpose}) == count


def test_latency_rises_with_the_load_and_overload_does_what_the_server_can(
    world: Callable[..., World],
) -> None:
    # In a second no percentile of so few requests is what it is in the long run.
    found = run(world(), replace(SEARCH, seconds=10.0))
    assert isinstance(found, RateCapacity)
    assert [level.share for level in found.load] == list(SHARES)
    latencies = [level.ms for level in found.load if level.ms is not None]
    assert latencies == sorted(latencies)
    assert 25 < latencies[-1] < 80  # at 95 % of where it is 50 ms
    assert [overload.times for overload in found.overload] == list(TIMES)
    assert found.overload[1].goodput_rps == pytest.approx(
        min(found.overload[1].rate, 1 / SERVICE_S), rel=0.06
    )
    assert all(overload.back_s is not None for overload in found.overload)
    assert found.left_out == ()


def test_killed_at_any_load_it_goes_on_with_none_of_it_measured_again(world: Callable[..., World]) -> None:
    whole = world()
    run(whole)
    results = stored(whole.record)
    every = purposes(results)
    in_proof, in_latency = every.index(Purpose.PROOF), every.index(Purpose.LATENCY) + 2
    for last in (1, 3, (in_proof + 3) // 2, in_proof, in_latency, len(every) - 1):
        goes_on_from(world(), replace(results, trials=results.trials[:last]), SEARCH)


@pytest.mark.exhaustive
def test_killed_at_each_load_it_goes_on_with_none_of_it_measured_again(world: Callable[..., World]) -> None:
    whole = world()
    run(whole)
    results = stored(whole.record)
    for last in range(1, whole.loads):
        goes_on_from(world(), replace(results, trials=results.trials[:last]), SEARCH)


def test_a_knee_goes_on_from_any_load(world: Callable[..., World]) -> None:
    whole = world()
    run(whole, CLOSED)
    results = stored(whole.record, CLOSED)
    for last in range(1, whole.loads):
        goes_on_from(world(), replace(results, trials=results.trials[:last]), CLOSED)


def goes_on_from(rest: World, before: Results, search: Search) -> None:
    last = len(before.trials)
    so_far = judge_stored(before, STACKS).found
    assert so_far.trials == last
    if isinstance(so_far, RateCapacity):
        assert "interrupted" in "\n".join((so_far.found.because, *so_far.left_out))
        assert (so_far.found.claim is not None) is (Purpose.PROOF in purposes(before))
    json.dumps(searches.document(so_far, "a title"), allow_nan=False)
    found = run(rest, search, before)
    assert rest.record.results[:last] == list(before.trials)
    assert rest.loads == len(rest.record.results) - last
    assert judge_stored(stored(rest.record, search), STACKS).found == found


def test_killed_while_a_disturbed_load_is_made_again_it_is_made_again_under_its_number(
    world: Callable[..., World],
) -> None:
    before = killed(world(last=6, spoils=lambda load: load in {5, 6}))
    rest = world()
    found = run(rest, before=before)
    numbers = [result.step.number for result in rest.record.results if result.step is not None]
    assert numbers[4:8] == [5, 5, 5, 6]
    assert judge_stored(stored(rest.record), STACKS).found == found


def test_a_boot_that_fails_ends_the_search_and_is_tried_again_on_resume(world: Callable[..., World]) -> None:
    first = world(refuses=2)
    with pytest.raises(Exception, match="its process ended before it answered"):
        run(first)
    before = stored(first.record)
    assert isinstance(before.trials[-1], Failed)
    assert "its process ended" in judge_stored(before, STACKS).found.found.because
    rest = world()
    found = run(rest, before=before)
    assert found.ending is Ending.CONVERGED
    assert judge_stored(stored(rest.record), STACKS).found == found


def test_a_boot_that_fails_after_the_answer_is_known_costs_only_what_was_to_be_shown(
    world: Callable[..., World],
) -> None:
    whole = world()
    run(whole)
    latency = [
        result.step.boot
        for result in whole.record.results
        if result.step is not None and result.step.purpose is Purpose.LATENCY
    ]
    first = world(refuses=max(latency))
    found = run(first)
    assert isinstance(found, RateCapacity)
    assert found.ending is Ending.CONVERGED
    assert any("its process ended" in reason for reason in found.left_out)
    assert judge_stored(stored(first.record), STACKS).found == found


def test_a_budget_ends_the_search_in_time_for_a_proof_and_says_what_it_left_out(
    world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Record.keep

    def keep(self: Record, result: Result, *rest: Any) -> Result:
        """Let as much time pass as the load takes."""
        load = result.trial.load
        self._before_s += load.warmup_s + load.duration_s
        return plain(self, result, *rest)

    monkeypatch.setattr(Record, "keep", keep)
    answers = {}
    for budget_s in (30.0, 120.0, 150.0, 1_000.0):
        search = replace(SEARCH, budget_s=budget_s)
        here = world()
        found = answers[budget_s] = run(here, search)
        assert isinstance(found, RateCapacity)
        assert found.seconds < budget_s
        assert judge_stored(stored(here.record, search), STACKS).found == found
    short, middle, long, ample = (answer for answer in answers.values() if isinstance(answer, RateCapacity))
    assert short.ending is not Ending.CONVERGED
    assert "30 s" in short.found.because
    assert short.overload == ()
    assert short.left_out
    assert len(middle.load) + len(middle.overload) < len(SHARES) + len(TIMES) or middle.left_out
    assert ample.left_out == ()
    assert ample.ending is Ending.CONVERGED
    assert len(long.left_out) <= len(middle.left_out)


def test_stored_loads_of_another_search_are_refused(world: Callable[..., World]) -> None:
    first = world()
    run(first)
    results = stored(first.record)
    third = results.trials[2]
    other = replace(
        third, trial=replace(third.trial, load=replace(third.trial.load, pace=Open(3.0, "poisson")))
    )
    changed = replace(results, trials=(*results.trials[:2], other, *results.trials[3:]))
    with pytest.raises(ResultsError, match="load 3"):
        judge_stored(changed, STACKS)
    left = replace(results, trials=(results.trials[0], *results.trials[2:]))
    with pytest.raises(ResultsError):
        judge_stored(left, STACKS)


def test_an_answer_that_never_holds_is_judged_again_as_such(world: Callable[..., World]) -> None:
    search = replace(SEARCH, demands=Demands(must=(read("p50 < 1ms"),)))
    first = world()
    found = run(first, search)
    assert found.ending is Ending.NEVER
    assert judge_stored(stored(first.record, search), STACKS).found == found


def test_without_a_lab_a_bench_has_no_other_loads_than_those_stored() -> None:
    with Bench(TRIAL, None) as bench, pytest.raises(NotStoredError):
        bench.connections(2)
