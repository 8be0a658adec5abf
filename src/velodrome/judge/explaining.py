"""Why an answer is as it is: arithmetic, cost, latency, what was set aside."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from velodrome.judge import stepping
from velodrome.judge.field import Runner
from velodrome.judge.latencies import FROM_DUE, latency_view
from velodrome.judge.littles_law import above, cannot_exceed, limited
from velodrome.judge.ranking import Ranking
from velodrome.judge.words import at_once, listed, sentence
from velodrome.model.capacity import Ceiling
from velodrome.model.flag import Severity
from velodrome.model.interval import Interval
from velodrome.model.load import Closed, Load, Open, Schedule
from velodrome.model.quantity import exact, memory, milliseconds, number, rate, short
from velodrome.model.study import Question
from velodrome.model.verdict import Outcome

CHEAPER = 1.15
"""A cost this many times another's is worth a sentence."""


@dataclass(frozen=True)
class Case:
    """All that is known of one question when its answer is worded."""

    question: Question
    load: Load
    """The one that ranks."""
    field: tuple[Runner, ...]
    ranking: Ranking | None
    rates: Mapping[str, Interval]
    costs: Mapping[str, Interval]
    ceilings: Mapping[str, Ceiling]

    def runner(self, label: str) -> Runner:
        """Return one contestant."""
        return next(runner for runner in self.field if runner.label == label)

    def named(self, labels: Sequence[str]) -> str:
        """Return some of them as a list in words."""
        return listed([self.runner(label).called for label in labels])


def why(case: Case, outcome: Outcome, first: Sequence[str], said: str) -> list[str]:
    """Return the explanations as whole sentences, most telling first; without what the answer `said`."""
    ranked = [case.runner(label) for label in case.ranking.order] if case.ranking else []
    measured = {
        label: case.rates[label]
        for label in (case.ranking.order if case.ranking else ())
        if label in case.rates
    }
    fastest = max((interval.mid for interval in measured.values()), default=0.0)
    found = [
        *_connections(case, ranked),
        *cannot_exceed(case.field, case.ceilings, fastest),
        *_cost(case, outcome, first),
        *_latency(case, first),
        *_steps(case),
        *above(ranked, case.ceilings, measured),
        *_set_aside_best(case, fastest),
        *_failed(case),
    ]
    return [sentence(one) for one in found if one not in said]


def nothing_valid(case: Case) -> str:
    """Return why nobody could be ranked."""
    load = case.load
    valid = [one for runner in case.field for one in runner.valid_under(load)]
    if (
        valid
        and not isinstance(load.pace, Closed)
        and all(one.load.due.mean is None for one in valid if one.load.ok)
    ):
        return f"{load.driver} does not tell latency from when requests were due, and at one rate that is what counts"
    kinds = [
        flag.sentence.rstrip(".")
        for runner in case.field
        for one in runner.under(case.load)
        for flag in one.flags
        if flag.severity is Severity.INVALID
    ]
    if kinds:
        common = max(kinds, key=kinds.count)
        return f"every measurement was set aside, most often so: {common}"
    reasons = [failure.reason.rstrip(".") for runner in case.field for failure in runner.failed]
    if reasons:
        return f"no contestant could be measured, most often so: {max(reasons, key=reasons.count)}"
    return "no right answer was given" if any(one.measured for one in case.field) else "nothing was run"


def _connections(case: Case, ranked: Sequence[Runner]) -> list[str]:
    """Tell when the load, not the servers, was the limit: then many tie, and rates decide nothing."""
    reached = limited(ranked, case.ceilings, case.rates, "connections")
    if not reached or not isinstance(case.load.pace, Closed):
        return []
    limit = case.ceilings[reached[0].label]
    many = f"{len(reached)} of {len(ranked)} reach" if len(ranked) > 1 else f"{reached[0].called} reaches"
    decides = "; between them CPU per request decides, not the rate" if len(reached) > 1 else ""
    return [
        f"{at_once(case.load)} that wait "
        f"{short(case.question.recipe.wait_ms)} ms each allow {limit.arithmetic}, and {many} that{decides}"
    ]


def _cost(case: Case, outcome: Outcome, first: Sequence[str]) -> list[str]:
    ranked = case.ranking.order if case.ranking else ()
    priced = sorted(
        (label for label in ranked if label in case.costs), key=lambda label: case.costs[label].mid
    )
    if len(priced) < 2 or not first or first[0] not in case.costs:
        return []
    best, own = first[0], case.costs[first[0]].mid
    if outcome is not Outcome.WINNER:
        rest = [label for label in first[1:] if label in case.costs]
        if not rest:
            return []
        dearest = max(rest, key=lambda label: case.costs[label].mid)
        used = case.runner(best).memory_bytes
        with_memory = f" and {memory(used)}" if used else ""
        return [
            f"Of those tied {case.runner(best).called} is recommended: {number(own)} µs of CPU a request"
            f"{with_memory}, where {case.runner(dearest).called} takes {number(case.costs[dearest].mid)} µs"
        ]
    cheapest = priced[0]
    if cheapest == best or own < CHEAPER * case.costs[cheapest].mid:
        return []
    return [
        f"It is not the cheapest: {case.runner(cheapest).called} takes {number(case.costs[cheapest].mid)} µs "
        f"of CPU a request, {case.runner(best).called} {number(own)} µs"
    ]


def _latency(case: Case, first: Sequence[str]) -> list[str]:
    """Compare latency where it may be compared: in an open loop, at one rate for all."""
    load = next((load for load in case.question.loads if isinstance(load.pace, Open)), None)
    if load is None or not isinstance(load.pace, Open):
        return []
    views = {runner.label: view for runner in case.field if (view := latency_view(runner, load))}
    if any(view.by and view.by.basis != FROM_DUE for view in views.values()):
        return []
    behind = [label for label, view in views.items() if view.fell_behind]
    kept = {
        label: view
        for label, view in views.items()
        if label not in behind and case.runner(label).valid_under(load)
    }
    name, p = (
        ("p99", "p99_ms") if all(view.p99_ms is not None for view in kept.values()) else ("p90", "p90_ms")
    )
    told = {label: value for label, view in kept.items() if (value := getattr(view, p)) is not None}
    found = []
    if len(told) > 1:
        quick, slow = min(told, key=lambda label: told[label]), max(told, key=lambda label: told[label])
        between = first and first[0] in told and first[0] not in (quick, slow)
        own = f"; {case.runner(first[0]).called} has {_ms(told[first[0]])}" if between else ""
        found.append(
            f"At the same {exact(load.pace.rate)} for all, {name} is lowest with {case.runner(quick).called} "
            f"({_ms(told[quick])}) and highest with {case.runner(slow).called} ({_ms(told[slow])}){own}"
        )
    if behind:
        verb = "does" if len(behind) == 1 else "do"
        found.append(f"{case.named(behind)} {verb} not keep up with {exact(load.pace.rate)}")
    return found


def _steps(case: Case) -> list[str]:
    """Tell up to which rate each kept up, of every load whose rate changes."""
    found = []
    for load in case.question.loads:
        if isinstance(load.pace, Schedule):
            views = {one.called: view for one in case.field if (view := latency_view(one, load))}
            found += stepping.sentence(load, views)
    return found


def _ms(value: float) -> str:
    return f"{milliseconds(value)} ms"


def _set_aside_best(case: Case, fastest: float) -> list[str]:
    """Name who would have been first if it could be believed."""
    ranked = case.ranking.ranks if case.ranking else {}
    return [
        f"{runner.called} showed {rate(case.rates[runner.label].mid)} and would be first, but it is set "
        f"aside: {_reason(runner, case.load)}"
        for runner in case.field
        if runner.label not in ranked
        and runner.label in case.rates
        and case.rates[runner.label].mid > fastest > 0
    ]


def _reason(runner: Runner, load: Load) -> str:
    sentences = [
        flag.sentence for one in runner.under(load) for flag in one.flags if flag.severity is Severity.INVALID
    ]
    return sentences[0] if sentences else "it has no valid measurement"


def _failed(case: Case) -> list[str]:
    failed = [runner for runner in case.field if runner.failed and not runner.measured]
    return [f"{runner.called} could not be measured: {runner.failed[0].reason}" for runner in failed]
