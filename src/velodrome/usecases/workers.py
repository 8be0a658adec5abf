"""Before a setting is recommended: is it still good with more workers than it raced with?

The leader of each question is served with one worker, with two and with as many as the answer is for, and loaded at a
low rate and in a closed loop, on fresh and on reused connections (`judge/workers.py` says what that comes to). One that
does not survive is out, and the next best is checked.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.judge.answering import answer
from velodrome.judge.settling import confidence
from velodrome.judge.words import list_names
from velodrome.judge.workers import judge_check, next_step, with_workers
from velodrome.model import quantity
from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import Measurement
from velodrome.model.noise import Noise
from velodrome.model.results import Result, Results
from velodrome.model.study import Question, Study
from velodrome.model.trial import Session, Trial
from velodrome.model.verdict import Answer
from velodrome.model.workers import PART
from velodrome.plan.matrix import session_s
from velodrome.run.racing.race import Serve

WARMUP_S, CLOSED_S, OPEN_S = 0.3, 1.0, 1.5
LONGEST_S = 4.0
WAVES = 3.0
"""A closed loop lasts so many times what a request takes in it, or `LONGEST_S`."""
LOW, LOW_RPS, LEAST_RPS = 0.2, 100.0, 2.0
"""The low rate: a fifth of what the setting did in the race, so that no request waits for another, within these."""
REQUESTS = 40
"""At the low rate: a p90 needs thirty."""
CONNECTIONS = 64

Tell = Callable[[str], None]


def counts(cpus: int) -> tuple[int, ...]:
    """Return the numbers of workers that are checked where the answer is for so many CPUs, the fewest first."""
    return tuple(sorted({1, 2, cpus}))


def loads(rps: float, fresh: bool, connections: int = CONNECTIONS) -> tuple[Load, ...]:
    """Return the loads of a check of a setting that did `rps` with so many connections; `fresh` connections too if it
    can."""
    waits_s = connections / rps if rps else 0.0
    rate = float(f"{min(max(LOW * rps, LEAST_RPS), LOW_RPS):.2g}")
    closed = Load(
        Closed(connections),
        min(max(CLOSED_S, WAVES * waits_s), LONGEST_S),
        min(max(WARMUP_S, waits_s), LONGEST_S / 2),
    )
    low = Load(Open(rate, "constant"), min(max(OPEN_S, REQUESTS / rate), LONGEST_S), WARMUP_S)
    both = (closed, low)
    return (*both, *(replace(load, keepalive=False) for load in both)) if fresh else both


def seconds(study: Study, stacks: Mapping[str, Stack]) -> float:
    """Return about how long the check of one setting takes; 0 where there is none."""
    if not study.worker_counts:
        return 0.0
    question, contestant = study.answered[0], study.contestants[0]
    trials = tuple(
        Trial(study.name, question.name, question.recipe, contestant, load, study.limits, 0, part=PART)
        for load in loads(LOW_RPS / LOW, fresh=True)
    )
    return len(study.worker_counts) * session_s(Session(trials), stacks)


def steps(study: Study, stacks: Mapping[str, Stack]) -> tuple[str, ...]:
    """Return the check as a step of a run plan; none where there is none."""
    if not study.worker_counts:
        return ()
    duration = quantity.duration(seconds(study, stacks))
    opening = f"the leader is run with {_words(study.worker_counts)} workers before it is recommended"
    return (f"{opening}: about {duration}, and as long for the next best if it does not survive",)


def closes(stack: Stack, trial: Trial) -> bool:
    """Return whether its clients may close a connection after each request: those of gRPC and WebSockets do not."""
    plain = trial.app is None or not trial.app.proto
    return plain and catalog.interface(stack.interface).protocol == "http"


def settle(
    template: Trial,
    every: Sequence[Load],
    numbers: Sequence[int],
    serve: Serve,
    before: Sequence[Result] = (),
) -> Iterator[Result]:
    """Yield what is measured of one setting until its check is settled; its trials are made from `template`.

    `serve` runs sessions, `before` is there already.
    """
    own = [*before]
    while (step := next_step(template.contestant, numbers, every, own)) is not None:
        contestant = with_workers(template.contestant, step.workers)
        trials = tuple(
            replace(template, contestant=contestant, load=load, block=step.again, link=None, part=PART)
            for load in step.loads
        )
        with closing(serve(Session(trials))) as results:
            for result in results:
                own.append(result)
                yield result


def check_leaders(
    study: Study,
    results: Sequence[Result],
    before: Results,
    stacks: Mapping[str, Stack],
    *,
    tell: Tell,
    serve: Serve,
) -> None:
    """Check whoever leads in each question of a study that was raced, and the next best of one that is out.

    `results` are the race's; `before` is what was there already, with the noise that is judged by. `serve` runs
    sessions and keeps their results. `tell` hears who is checked, and who is out and why.
    """
    for question in study.answered:
        checks = [check for check in before.checks if check.trial.question == question.name]
        _check(study, question, results, before.header.noise, stacks, checks=checks, tell=tell, serve=serve)


def _check(
    study: Study,
    question: Question,
    results: Sequence[Result],
    noise: Noise,
    stacks: Mapping[str, Stack],
    *,
    checks: list[Result],
    tell: Tell,
    serve: Serve,
) -> None:
    numbers = study.worker_counts
    settled: set[str] = set()
    while leader := _measured_race(
        question,
        results,
        answer(
            question,
            results,
            stacks,
            noise,
            checks=checks,
            worker_counts=numbers,
            confidence=confidence(study),
        ),
    ):
        label = leader[0].trial.label
        template, stack = leader[0].trial, stacks[leader[0].trial.contestant.stack]
        if label in settled or "workers" not in stack.knobs:
            return
        settled.add(label)
        called = template.contestant.called(stack)
        tell(f"checking {called} with {_words(numbers)} workers before it is recommended")
        every = _loads_like(question, leader, fresh=closes(stack, template))
        checks.extend(settle(template, every, numbers, serve, tuple(checks)))
        found = judge_check(template.contestant, stack, numbers, checks)
        if found is not None and found.survived is False:
            tell(f"{called} is not recommended: {found.sentence}")


def _measured_race(question: Question, results: Sequence[Result], found: Answer | None) -> list[Measurement]:
    """Return what was measured in the race of whoever would be recommended; nothing where nobody would be."""
    best = found.best[:1] if found else ()
    return [
        result
        for result in results
        if isinstance(result, Measurement)
        and result.trial.question == question.name
        and result.trial.label in best
    ]


def _loads_like(question: Question, raced: Sequence[Measurement], *, fresh: bool) -> tuple[Load, ...]:
    """Return the loads of the check of a setting by what it did in the race."""
    load = question.ranking_load
    rates = [
        measurement.load.throughput_rps
        for measurement in raced
        if measurement.trial.load.label == load.label and measurement.valid
    ]
    rps = min(rates, default=0.0)
    connections = load.pace.connections if isinstance(load.pace, Closed) else CONNECTIONS
    return loads(rps, fresh, connections)


def _words(numbers: Sequence[int]) -> str:
    return list_names([str(number) for number in numbers])
