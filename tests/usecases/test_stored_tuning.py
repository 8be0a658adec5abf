"""A tuning is made of what it stored: judged again it says the same, interrupted it goes on, its claim is proven."""

import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from tests.judge import made

from velodrome.guest import catalog
from velodrome.judge.search.holding import Demands
from velodrome.judge.statistics import student_t
from velodrome.judge.tuning.racing import confirming, drive, race, whole
from velodrome.judge.workers import with_workers
from velodrome.model import quantity
from velodrome.model import results as texts
from velodrome.model.app import App
from velodrome.model.load import Closed, Limits, Load, Open
from velodrome.model.measurement import Failed, FailureKind, Purpose, Step
from velodrome.model.quantity import Interval
from velodrome.model.results import Result, Results, Sought
from velodrome.model.trial import Contestant, Trial
from velodrome.model.tuning import Ask, Candidate, Fate, Goal, Observation, TuneEnding
from velodrome.model.workers import PART
from velodrome.plan.matrix import candidate
from velodrome.report import recommendation
from velodrome.run.racing.store import now
from velodrome.usecases import workers
from velodrome.usecases.recording import Record, header
from velodrome.usecases.tune import Budget, Progress, Replayed, judge_stored, of_one_start

STACKS = catalog.stacks()
GRID = tuple(
    candidate(STACKS[stack], {"threads": count})
    for stack, count in (("gunicorn-gthread", 16), ("gunicorn-gthread", 64), ("waitress", 64))
)
DOES = {
    "gunicorn-gthread[threads=16]": 780.0,
    "gunicorn-gthread[threads=64]": 1_450.0,
    "waitress[threads=64]": 1_300.0,
}
TRIAL = Trial("tune", "hello", made.HELLO, Contestant(""), Load(Closed(1), 1.0), Limits(1), block=0)
SOUGHT = Sought("tune", (), Goal.CAPACITY.value, cpus=1, budget_s=600.0, candidates=GRID)
HEADER = header(TRIAL, SOUGHT, "Which setting to deploy", tuple(candidate.contestant for candidate in GRID))


@dataclass
class Machine:
    """Servers that do so much, each start a little more or less, and less in a proof where it is set so."""

    record: Record = field(default_factory=Record)
    replayed: Replayed = field(default_factory=lambda: Replayed(SOUGHT, Limits(1)))
    in_proof: float = 1.0
    last: int = 10_000
    """Loads until it is interrupted."""
    boot: int = 0
    runs: str = ""

    def measure(self, candidate: Candidate, wanted: Ask) -> Observation:
        if len(self.record.results) >= self.last:
            raise KeyboardInterrupt
        if wanted.fresh or candidate.label != self.runs:
            self.runs, self.boot = candidate.label, self.record.next_boot()
        most = DOES[candidate.label] * (1 + 0.02 * (self.boot % 3 - 1))
        most *= self.in_proof if wanted.purpose is Purpose.PROOF else 1.0
        pace = Open(wanted.rate) if wanted.rate else Closed(wanted.connections)
        load = Load(pace, wanted.seconds)
        trial = self.record.number(replace(TRIAL, contestant=candidate.contestant, load=load))
        rps = min(wanted.rate or 40.0 * wanted.connections, most)
        self.record.ask()
        found = made.measured(trial, rps, cpu_us=600.0, mean_ms=20.0)
        (done,) = self.replayed.progress.take([self.record.keep(found, self.boot, wanted.purpose)])
        return done.observed

    def run(self) -> "Machine":
        self.replayed.take(self.record.results)
        race(self.measure, self.replayed.field)
        drive(confirming(whole(self.replayed.field)), self.measure)
        while (proof := self.replayed.next_proof()) is not None:
            self.measure(*proof)
        return self

    @property
    def results(self) -> Results:
        return Results(HEADER, tuple(self.record.results), 0, torn=False)


def stored(results: Results) -> Results:
    """The same as it is read from the disk."""
    lines = [texts.dump_header(HEADER), *(texts.dump(trial, HEADER.study) for trial in results.trials)]
    return texts.parse("".join(f"{line}\n" for line in lines).encode())


def test_what_is_stored_is_judged_again_with_the_same_answer() -> None:
    machine = Machine().run()
    first, again = judge_stored(machine.results, STACKS), judge_stored(stored(machine.results), STACKS)
    assert again == first
    assert again.tuned == machine.replayed.result()
    assert again.tuned.ending is TuneEnding.SETTLED
    assert again.tuned.best is not None
    assert again.tuned.best.candidate.contestant.knobs == {"threads": 64}
    assert again.command == first.command != ""


def test_what_is_claimed_is_the_lower_end_of_at_least_three_starts_and_was_proven_at_that_rate() -> None:
    found = judge_stored(Machine().run().results, STACKS)
    best, second = found.tuned.best, found.tuned.runner_up
    assert best is not None
    assert best.value is not None
    assert second is not None
    assert best.boots >= 3
    assert second.boots >= 3
    (proof,) = found.proofs
    assert found.claim == proof.rate <= best.value.low
    assert found.claim == pytest.approx(best.value.low, rel=0.01)
    assert found.claim >= 0.85 * best.value.mid
    assert proof.seconds == 60.0
    assert found.proof is not None
    assert found.proof.trial.load.pace == Open(proof.rate)
    assert found.proof.step is not None
    starts = [result.step.boot for result in Machine().run().record.results if result.step]
    assert starts.count(found.proof.step.boot) == 1  # on a start of its own
    assert f"carries {quantity.rate(found.claim)} that" in recommendation.sentence(found)


def test_a_proof_that_fails_lowers_the_claim_and_is_reported() -> None:
    found = judge_stored(Machine(in_proof=0.8).run().results, STACKS)
    best = found.tuned.best
    assert best is not None
    assert best.value is not None
    failed, held = found.proofs[0], found.proofs[-1]
    assert failed.held is False
    assert held.held
    assert found.claim == held.rate < 0.9 * best.value.low
    assert " it did not hold for " in "\n".join(recommendation.lines(found))


def test_what_is_proven_far_below_the_estimate_only_is_not_settled() -> None:
    found = judge_stored(Machine(in_proof=0.3).run().results, STACKS)
    assert found.tuned.ending is TuneEnding.SPENT
    assert found.claim is not None
    assert f"no more than {quantity.rate(found.claim)} was proven" in found.tuned.because


def test_an_interrupted_tuning_goes_on_with_what_it_has_and_measures_none_of_it_again() -> None:
    whole = Machine().run()
    half = Machine(last=20)
    with pytest.raises(KeyboardInterrupt):
        half.run()
    before = stored(half.results)
    rest = Machine(Record(before=before)).run()
    assert rest.record.results[:20] == half.record.results
    alone = [
        result.trial.contestant.stack for result in rest.record.results if _purpose(result) is Purpose.ALONE
    ]
    assert len(alone) == len(set(alone))
    assert judge_stored(rest.results, STACKS).tuned.best == judge_stored(whole.results, STACKS).tuned.best


def _purpose(result: Result) -> Purpose | None:
    return result.step.purpose if result.step else None


def test_the_document_of_a_judged_tuning_is_json() -> None:
    found = recommendation.document(judge_stored(Machine().run().results, STACKS, "runs/mine"))
    plain = json.loads(json.dumps(found, allow_nan=False))
    assert plain["claim"] == plain["proofs"][-1]["rate"]
    assert plain["recommended"]["boots"] >= 3
    assert plain["cold_start_s"]["low"] > 0
    assert plain["folder"] == "runs/mine"


def test_a_setting_that_does_not_survive_more_workers_is_out_and_judged_again_the_next_best_leads() -> None:
    machine = Machine().run()
    fastest = GRID[1].contestant
    busy = Load(Closed(64), 1.0)
    checks = tuple(
        made.measured(
            replace(TRIAL, contestant=with_workers(fastest, count), load=busy, block=again, part=PART), rps
        )
        for again in (0, 1)
        for count, rps in ((1, 1_400.0), (2, 90.0))
    )
    assert machine.replayed.take_checks(checks, STACKS, (1, 2))
    assert not machine.replayed.take_checks(checks, STACKS, (1, 2))
    race(machine.measure, machine.replayed.field)  # it goes on without it
    drive(confirming(whole(machine.replayed.field)), machine.measure)
    lines = [
        texts.dump_header(HEADER),
        *(texts.dump(result) for result in (*machine.record.results, *checks)),
    ]
    results = texts.parse("".join(f"{line}\n" for line in lines).encode())
    assert len(results.checks) == 4
    found = judge_stored(results, STACKS)
    assert found.tuned.best is not None
    assert found.tuned.best.candidate.contestant.stack == "waitress"
    assert found.workers is not None
    assert found.workers.survived is None  # waitress has no workers
    out = next(entry for entry in found.tuned.entries if entry.candidate.contestant == fastest)
    assert out.fate is Fate.FAILED
    assert "90.0/s with 2 workers" in out.why
    record = Record(before=results)
    assert (len(record.checks), len(record.results)) == (4, len(results.trials))


def step(number: int, purpose: Purpose, boot: int = 1, spent_s: float = 0.0) -> Step:
    return Step(number, boot, purpose, spent_s)


def load(pace: Open | Closed, rps: float, of: Step, block: int, seconds: float = 2.0) -> Result:
    trial = replace(TRIAL, contestant=GRID[0].contestant, load=Load(pace, seconds), block=block)
    return replace(made.measured(trial, rps, mean_ms=20.0), step=of)


def test_of_a_load_that_was_made_again_the_last_counts_and_a_warm_up_says_nothing() -> None:
    progress = Progress(Demands())
    found = progress.take(
        [
            load(Closed(16), 700.0, step(1, Purpose.WARM_UP), 1),
            load(Open(300.0), 100.0, step(2, Purpose.RATE), 2),
            load(Open(300.0), 300.0, step(2, Purpose.RATE, spent_s=9.0), 3),
        ]
    )
    assert [(entry.observed.held, entry.observed.ask.rate, entry.observed.boot) for entry in found] == [
        (True, 300.0, 1)
    ]
    assert progress.spent_s == 9.0


def test_a_server_that_does_not_start_for_its_proof_fails_it() -> None:
    machine = Machine()
    machine.replayed.take([])
    race(machine.measure, machine.replayed.field)
    drive(confirming(whole(machine.replayed.field)), machine.measure)
    proof = machine.replayed.next_proof()
    assert proof is not None
    trial = replace(TRIAL, contestant=proof[0].contestant, block=0)
    machine.record.ask()
    dead = Failed(trial, now(), FailureKind.START, "its process ended")
    machine.replayed.take([machine.record.keep(dead, machine.record.next_boot(), Purpose.PROOF)])
    assert machine.replayed.next_proof() is None
    found = judge_stored(machine.results, STACKS)
    assert found.tuned.ending is TuneEnding.SPENT
    assert "its process ended" in found.tuned.because
    assert found.claim is None


@pytest.mark.parametrize(
    ("last_lines", "why"),
    [
        (
            (
                "Traceback (most recent call last):",
                '  File "app.py", line 3',
                "    import gone",
                "ImportError: no gone",
            ),
            "ImportError: no gone (its process ended: exit 1)",
        ),
        (
            ("    asked.check()", "apps.Unfit", "[ERROR] Worker exited"),
            "apps.Unfit (its process ended: exit 1)",
        ),
        (("listening", "[ERROR] Worker exited"), "its process ended: exit 1"),
        ((), "its process ended: exit 1"),
    ],
)
def test_a_server_that_does_not_start_is_out_with_the_exception_that_ended_it(
    last_lines: tuple[str, ...], why: str
) -> None:
    record, progress = Record(), Progress(Demands())
    contestant = GRID[0].contestant
    record.ask()
    dead = Failed(
        replace(TRIAL, contestant=contestant),
        now(),
        FailureKind.START,
        f"{contestant.label}: its process ended: exit 1",
        last_lines,
    )
    (made_one,) = progress.take([record.keep(dead, record.next_boot(), Purpose.ALONE)])
    assert made_one.observed.failed == why


@pytest.mark.parametrize(("budget_s", "proof_s"), [(600.0, 60.0), (180.0, 30.0), (30.0, 5.0)])
def test_a_budget_keeps_time_for_what_confirms_and_proves(budget_s: float, proof_s: float) -> None:
    budget = Budget(budget_s, Demands())
    assert budget.proof_s == proof_s
    assert 0 < budget.racing_s < budget.confirmed_s < budget_s
    progress = Progress(Demands())
    assert budget.goes_on(progress)
    progress.spent_s = budget.racing_s
    assert not budget.goes_on(progress)
    assert (budget.confirms(progress) > 0) is (budget_s > 100)
    progress.spent_s = budget_s
    assert budget.confirms(progress) == 0
    assert budget.proves(progress, tried=0) >= 5.0  # the first is made however late it is
    assert budget.proves(progress, tried=1) == 0


def test_the_folder_of_a_tuning_is_read_as_one(tmp_path: Path) -> None:
    machine = Machine().run()
    file = tmp_path / "results.jsonl"
    lines = [
        texts.dump_header(HEADER),
        *(texts.dump(trial, HEADER.study) for trial in machine.results.trials),
    ]
    file.write_text("".join(f"{line}\n" for line in lines))
    assert texts.parse(file.read_bytes()).header.sought == SOUGHT


def test_what_survives_more_workers_is_settled() -> None:
    results = Machine().run().results
    best = judge_stored(results, STACKS).tuned.best
    assert best is not None
    checks = []
    for count in (1, 2):
        for load in workers.loads(1_450.0, fresh=True):
            rate_rps = load.pace.rate if isinstance(load.pace, Open) else 1_450.0
            who = with_workers(best.candidate.contestant, count)
            of = replace(TRIAL, contestant=who, load=load, part=PART)
            checks.append(made.measured(of, rate_rps, mean_ms=5.0))
    found = judge_stored(replace(results, checks=tuple(checks)), STACKS)
    assert found.workers is not None
    assert found.workers.survived is True
    assert found.tuned.ending is TuneEnding.SETTLED
    assert found.command


# --- What is pasted, started as it stands.

APP = App("shop:app", "wsgi", "/usr/bin/python3", "/srv/shop")


def pasted(machine: Machine, rps: float, failed: str = "", cpu_us: float = 600.0) -> Machine:
    """Start what is pasted until the search is content; it does so much at the claimed rate."""
    while (pending := machine.replayed.next_pasted(APP, STACKS)) is not None:
        candidate, wanted = pending
        machine.record.ask()
        boot = machine.record.next_boot()
        trial = machine.record.number(
            replace(TRIAL, contestant=candidate.contestant, load=Load(Open(wanted.rate), wanted.seconds))
        )
        found: Result = made.measured(trial, min(rps, wanted.rate), cpu_us=cpu_us, mean_ms=20.0)
        if failed:
            busy = replace(trial, load=Load(Closed(16), 1.5))
            found = Failed(busy, now(), FailureKind.START, failed)
        machine.replayed.take([machine.record.keep(found, boot, wanted.purpose)])
    return machine


def test_what_is_pasted_is_loaded_at_the_claimed_rate_and_settled_where_it_holds_that() -> None:
    machine = pasted(Machine().run(), rps=2_000.0)
    found = judge_stored(machine.results, STACKS)
    assert found.pasted is not None
    assert found.pasted.within
    assert found.pasted.rate == found.claim
    assert found.tuned.ending is TuneEnding.SETTLED
    assert found.command
    assert [_purpose(result) for result in machine.record.results].count(Purpose.PASTED) == 1
    assert judge_stored(stored(machine.results), STACKS) == found
    document = recommendation.document(found)
    assert document["pasted"]["within"] is True
    assert "Pasted as it stands" in "\n".join(recommendation.lines(found))


def test_what_is_pasted_and_does_not_hold_the_claim_twice_is_not_settled_and_not_given() -> None:
    machine = pasted(Machine().run(), rps=500.0)
    found = judge_stored(machine.results, STACKS)
    assert found.pasted is not None
    assert found.pasted.within is False
    assert found.tuned.ending is TuneEnding.SPENT
    assert "pasted as it stands" in found.tuned.because
    assert found.withheld
    assert not found.command
    assert [_purpose(result) for result in machine.record.results].count(Purpose.PASTED) == 2


def test_what_is_pasted_and_does_not_start_is_tried_once_and_the_reason_is_reported() -> None:
    machine = pasted(Machine().run(), rps=2_000.0, failed="its process ended before it answered: exit 2")
    found = judge_stored(machine.results, STACKS)
    assert found.pasted is not None
    assert (found.pasted.within, found.pasted.rate) == (False, 0.0)
    assert "exit 2" in found.tuned.because
    assert "did not start" in "\n".join(recommendation.lines(found))
    assert [_purpose(result) for result in machine.record.results].count(Purpose.PASTED) == 1


def test_of_a_recipe_and_of_a_tuning_without_a_claim_nothing_is_pasted() -> None:
    machine = Machine().run()
    assert machine.replayed.next_pasted(None, STACKS) is None
    assert judge_stored(machine.results, STACKS).pasted is None
    unproven = Machine()
    unproven.replayed.take([])
    race(unproven.measure, unproven.replayed.field)
    drive(confirming(whole(unproven.replayed.field)), unproven.measure)
    assert unproven.replayed.next_pasted(APP, STACKS) is None


@pytest.mark.parametrize("starts", [3, 5])
def test_one_more_start_lies_within_the_interval_of_one_start_in_95_worlds_of_100(starts: int) -> None:
    random = np.random.default_rng(7)
    within = 0
    for _ in range(2_000):
        logs = math.log(600) + 0.05 * random.standard_normal(starts + 1)
        half = student_t(starts - 1) * float(np.std(logs[:-1], ddof=1)) / math.sqrt(starts)
        mean = float(np.mean(logs[:-1]))
        reported = Interval(math.exp(mean - half), math.exp(mean), math.exp(mean + half))
        interval = of_one_start(reported, starts)
        within += interval.low <= math.exp(logs[-1]) <= interval.high
    assert 0.93 < within / 2_000 < 0.97
