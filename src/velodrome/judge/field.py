"""The field of one question: what each contestant did, sorted by load and block, ready to be compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from velodrome.guest.stack import Stack
from velodrome.judge.statistics import Sample
from velodrome.model.littles_law import Ceiling, ceiling
from velodrome.model.load import Closed, Load
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.study import Question
from velodrome.model.trial import Contestant


@dataclass(frozen=True)
class Runner:
    """One contestant in one question."""

    label: str
    contestant: Contestant
    called: str
    """As read in a sentence."""
    python: str
    """Interpreter that the race gave it by `--python`, or empty."""
    stack: Stack | None
    """None when results are judged where the stack is not known."""
    measured: tuple[Measurement, ...]
    failed: tuple[Failed, ...]

    def under(self, load: Load) -> list[Measurement]:
        """Return what was measured under a load, by block."""
        found = [one for one in self.measured if one.trial.load.label == load.label]
        return sorted(found, key=lambda one: one.trial.block)

    def valid_under(self, load: Load) -> list[Measurement]:
        """Return what may count."""
        return [one for one in self.under(load) if one.valid]

    def shown_under(self, load: Load) -> list[Measurement]:
        """Return what may count or, when nothing may, what there is: it is shown, never ranked."""
        return self.valid_under(load) or self.under(load)

    def ceiling(self, question: Question, load: Load) -> Ceiling | None:
        """Return what arithmetic allows it under a load; None too where it cannot be told."""
        if self.stack is None or not set(self.contestant.knobs) <= set(self.stack.knobs):
            return None
        limits = self.measured[0].trial.limits if self.measured else None
        cpus = limits.cpus if limits else None
        if limits and cpus == "all":
            cpus = len(self.measured[0].placement.server_cpus)
        return ceiling(
            self.stack,
            self.contestant.knobs,
            question.recipe,
            load.pace,
            cpus if isinstance(cpus, int) else None,
            streams=load.streams,
            rtt_ms=question.link.rtt_ms if question.link else 0.0,
        )

    @property
    def memory_bytes(self) -> int | None:
        """Its highest memory in the question; shared pages counted once where the system tells (PSS)."""
        return max((one.memory_bytes for one in self.measured), default=None)


def runners(
    question: Question, results: Sequence[Measurement | Failed], stacks: Mapping[str, Stack]
) -> list[Runner]:
    """Return all contestants of a question that have any result, in the order of their labels."""
    by_label: dict[str, list[Measurement | Failed]] = {}
    for result in results:
        if result.trial.question == question.name:
            by_label.setdefault(result.trial.label, []).append(result)
    found = []
    for label, own in sorted(by_label.items()):
        contestant = own[0].trial.contestant
        stack = stacks.get(contestant.stack)
        called = contestant.called(stack)
        python = "" if contestant.python else own[0].trial.python
        found.append(
            Runner(
                label,
                contestant,
                f"{called}, Python {python}" if python else called,
                python,
                stack,
                tuple(one for one in own if isinstance(one, Measurement)),
                tuple(one for one in own if isinstance(one, Failed)),
            )
        )
    return found


def ranking_load(question: Question) -> Load:
    """Return the load that ranks: the first closed loop or, without one, the first load."""
    return next((load for load in question.loads if isinstance(load.pace, Closed)), question.loads[0])


def score(runner: Runner, question: Question, load: Load) -> Sample | None:
    """Return what ranks a contestant, more being better; None when nothing valid is there.

    Closed loop: right answers a second. Open loop, where all are asked the same rate: right answers a second
    over the mean latency, so that neither falling behind nor being slow pays; nothing by a generator that does
    not tell latency from when requests were due. One that never gave a right answer has no values: it is last,
    and has no ratio to anybody.
    """
    valid = runner.valid_under(load)
    if not valid:
        return None
    if not any(one.load.answers for one in valid):
        return Sample(runner.label, {})
    if not isinstance(load.pace, Closed):
        # Means of blocks may be combined, percentiles may not. Nothing answered: as slow as the time-out.
        told = [one for one in valid if one.load.due.mean is not None or not one.load.ok]
        values = {
            one.trial.block: _rps(one) / max(one.load.due.mean or load.timeout_s * 1000, 1e-3) for one in told
        }
        return Sample(runner.label, values) if told else None
    return rates(runner.label, valid, question, load)


def cpu_cost(runner: Runner, load: Load) -> Sample | None:
    """Return server CPU per right answer, microseconds."""
    values = {
        one.trial.block: cost
        for one in runner.shown_under(load)
        if (cost := one.cpu_us_per_request) is not None and cost > 0
    }
    return Sample(runner.label, values) if values else None


def throughput(runner: Runner, question: Question, load: Load) -> Sample | None:
    """Return right answers a second, also of measurements set aside when there are no others: to be shown."""
    shown = runner.shown_under(load)
    return rates(runner.label, shown, question, load) if shown else None


def rates(label: str, measured: Sequence[Measurement], question: Question, load: Load) -> Sample:
    """Return right answers a second of just these measurements."""
    return Sample(label, {one.trial.block: _rps(one) for one in measured}, _grain(measured, question, load))


def failures(one: Measurement, load: Load) -> int:
    """Return requests without a right answer. A closed loop always ends with some in flight: those are none."""
    unfinished = one.load.outcomes.get("unfinished", 0) if isinstance(load.pace, Closed) else 0
    return one.load.requests - one.load.ok - unfinished


def _rps(one: Measurement) -> float:
    """Return right answers a second; none at all counts as half an answer, so that a ratio exists."""
    return max(one.load.throughput_rps, 0.5 / one.load.duration_s if one.load.duration_s > 0 else 0.5)


def _grain(measured: Sequence[Measurement], question: Question, load: Load) -> float:
    """Return the spread that the ends of a span alone give a count, as a share of it.

    A span catches a fraction more or less of what arrives together: one answer, or, where the recipe waits
    and so keeps a closed loop in step, one wave of all connections. Of a uniform phase at both ends the
    variance is 1/6 of that unit squared.
    """
    counts = [max(one.load.answers, 0.5) for one in measured]
    mean = sum(counts) / len(counts)
    wave = 1.0
    if question.recipe.wait_ms > 0 and isinstance(load.pace, Closed):
        wave = min(load.pace.connections * load.streams, _served_at_once(mean, measured, question))
    return min(1.0, max(1.0, wave) / (mean * 6**0.5))


def _served_at_once(count: float, measured: Sequence[Measurement], question: Question) -> float:
    """Return how many requests waited together: Little's law over the recipe's own wait."""
    span = sum(one.load.duration_s for one in measured) / len(measured)
    return count / span * question.recipe.wait_ms / 1000 if span > 0 else 1.0
