"""The answer to one question: which contestant, by how much, why, and in a sentence a person can use.

In reading order: what arithmetic alone says; the explanations; the answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from velodrome.guest.stack import Stack, one_per_worker
from velodrome.judge import workers
from velodrome.judge.deploying import deploy_app, with_comment
from velodrome.judge.field import Runner, cpu_cost, memory_use, runners, score
from velodrome.judge.own_share import MARGIN, is_known, matters_not, where_it_goes
from velodrome.judge.own_share import sentence as share_sentence
from velodrome.judge.search.holding import bounding
from velodrome.judge.standings import (
    FROM_DUE,
    Ranking,
    alone,
    equal,
    latency_view,
    rank,
    rates_of,
    standings,
    steps_sentence,
)
from velodrome.judge.statistics import CONFIDENCE, Comparison, Sample, Side, block_s, to_settle
from velodrome.judge.words import at_once, inverse, lead, list_names, sentence
from velodrome.model.littles_law import Ceiling
from velodrome.model.load import Closed, Load, Open, Schedule
from velodrome.model.measurement import Failed, FlagKind, Measurement, Severity
from velodrome.model.noise import SHIPPED, Noise
from velodrome.model.quantity import (
    Interval,
    difference,
    exact,
    memory,
    milliseconds,
    number,
    percent,
    rate,
    short,
    span,
    within,
)
from velodrome.model.study import Question
from velodrome.model.verdict import Answer, LatencyView, Outcome, OwnShare, Standing, Verdict
from velodrome.model.workers import WorkerCheck

REACHED = 0.9
"""From this share of a ceiling on, the ceiling is what limits."""
ABOVE = 1.05
"""Above this share of it, something is wrong with the ceiling or the figure."""


def limited_by(
    runners: Sequence[Runner], ceilings: Mapping[str, Ceiling], measured: Mapping[str, Interval], bound: str
) -> list[Runner]:
    """Return those that reach a ceiling of that kind."""
    return [
        runner
        for runner in runners
        if (found := ceilings.get(runner.label))
        and found.bound == bound
        and runner.label in measured
        and measured[runner.label].mid >= REACHED * found.rps
    ]


def cannot_exceed(
    runners: Sequence[Runner], ceilings: Mapping[str, Ceiling], fastest_rps: float
) -> list[str]:
    """Return one sentence for each ceiling by slots that lies clearly below the fastest, lowest first.

    «gunicorn · sync ×2 cannot exceed 10/s, because 2 ÷ 0.2 s = 10/s»
    """
    groups: dict[str, list[Runner]] = {}
    for runner in sorted(
        runners, key=lambda runner: ceilings[runner.label].rps if runner.label in ceilings else 0.0
    ):
        found = ceilings.get(runner.label)
        if found and found.bound == "slots" and found.rps < REACHED * fastest_rps:
            groups.setdefault(found.arithmetic, []).append(runner)
    return [
        f"{list_names([runner.called for runner in group])} cannot exceed {exact(ceilings[group[0].label].rps)}, "
        f"because {arithmetic}"
        for arithmetic, group in groups.items()
    ]


def above(
    runners: Sequence[Runner], ceilings: Mapping[str, Ceiling], measured: Mapping[str, Interval]
) -> list[str]:
    """Return one sentence for each contestant that did more than arithmetic allows."""
    return [
        f"{runner.called} did {rate(measured[runner.label].mid)}, more than arithmetic allows it "
        f"({ceilings[runner.label].arithmetic}): either it waits less than the recipe says or it serves "
        "more at once than its description says. Do not trust this row before you know which."
        for runner in runners
        if runner.label in measured
        and runner.label in ceilings
        and measured[runner.label].low > ABOVE * ceilings[runner.label].rps
    ]


# --- Why an answer is as it is: arithmetic, cost, latency, what was set aside.

CHEAPER = 1.15
"""A cost this many times another's is worth a sentence."""


@dataclass(frozen=True)
class Case:
    """All that is known of one question when its answer is worded."""

    question: Question
    load: Load
    """The load that ranks."""
    field: tuple[Runner, ...]
    ranking: Ranking | None
    rates: Mapping[str, Interval]
    costs: Mapping[str, Interval]
    ceilings: Mapping[str, Ceiling]
    checks: Mapping[str, WorkerCheck]
    """With more workers, by label."""
    share: OwnShare | None = None
    """How much of a request is the app's own; None: it was not measured."""

    @property
    def out(self) -> set[str]:
        """Labels of those that do not survive more workers."""
        return workers.disqualified(self.checks)

    def runner(self, label: str) -> Runner:
        """Return one contestant."""
        return next(runner for runner in self.field if runner.label == label)

    def named(self, labels: Sequence[str]) -> str:
        """Return some of them as a list in words."""
        return list_names([self.runner(label).called for label in labels])


def why(case: Case, outcome: Outcome, first: Sequence[str], answer: str) -> list[str]:
    """Return the explanations as whole sentences, most telling first; without those that `answer` contains."""
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
        *_own(case, outcome),
        *above(ranked, case.ceilings, measured),
        *_set_aside_best(case, fastest),
        *_failed(case),
    ]
    return [sentence(reason) for reason in found if reason not in answer]


def nothing_valid(case: Case) -> str:
    """Return why nobody could be ranked."""
    load = case.load
    valid = [measurement for runner in case.field for measurement in runner.valid_under(load)]
    if (
        valid
        and not isinstance(load.pace, Closed)
        and all(measurement.load.due.mean is None for measurement in valid if measurement.load.ok)
    ):
        return f"{load.driver} does not report latency from when requests were due, which is what counts at one rate"
    kinds = [
        flag.sentence.rstrip(".")
        for runner in case.field
        for measurement in runner.under(case.load)
        for flag in measurement.flags
        if flag.severity is Severity.INVALID
    ]
    if kinds:
        common = max(kinds, key=kinds.count)
        return f"every measurement was set aside, most often so: {common}"
    reasons = [failure.reason.rstrip(".") for runner in case.field for failure in runner.failed]
    if reasons:
        return f"no contestant could be measured, most often so: {max(reasons, key=reasons.count)}"
    return "no response was correct" if any(runner.measured for runner in case.field) else "nothing was run"


def _connections(case: Case, ranked: Sequence[Runner]) -> list[str]:
    """Tell when the load, not the servers, was the limit: then many tie, and rates decide nothing."""
    reached = limited_by(ranked, case.ceilings, case.rates, "connections")
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
        if _unfit(case, best):
            return []  # nobody is recommended, whoever is cheapest
        rest = [label for label in first[1:] if label in case.costs]
        if not rest:
            return []
        dearest = max(rest, key=lambda label: case.costs[label].mid)
        used = case.runner(best).memory_bytes
        with_memory = f" and {memory(used)}" if used else ""
        theirs = case.runner(dearest).memory_bytes
        their_memory = f" and {memory(theirs)}" if used and theirs else ""
        chosen = "would be chosen" if outcome is Outcome.CANNOT_TELL else "is recommended"
        return [
            f"Of those tied {case.runner(best).called} {chosen}: {number(own)} µs of CPU a request"
            f"{with_memory}, where {case.runner(dearest).called} takes {number(case.costs[dearest].mid)} µs"
            f"{their_memory}"
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
    values = {label: value for label, view in kept.items() if (value := getattr(view, p)) is not None}
    found = []
    if len(values) > 1:
        quick, slow = (
            min(values, key=lambda label: values[label]),
            max(values, key=lambda label: values[label]),
        )
        between = first and first[0] in values and first[0] not in (quick, slow)
        own = f"; {case.runner(first[0]).called} has {_ms(values[first[0]])}" if between else ""
        same = f"At the same {exact(load.pace.rate)} for all, {name}"
        if _apart(views[quick], views[slow], p):
            found.append(
                f"{same} is lowest with {case.runner(quick).called} ({_ms(values[quick])}) and highest with "
                f"{case.runner(slow).called} ({_ms(values[slow])}){own}"
            )
        else:
            found.append(f"{same} differs clearly with nobody: {_ms(values[quick])} to {_ms(values[slow])}")
    if behind:
        verb = "does" if len(behind) == 1 else "do"
        found.append(f"{case.named(behind)} {verb} not keep up with {exact(load.pace.rate)}")
    return [*found, *_why_that_rate(case)] if found else found


def _apart(quick: LatencyView, slow: LatencyView, percentile: str) -> bool:
    """Return whether the intervals of a percentile leave one of them above the other; without one it is known well."""
    _, high = quick.within.get(percentile, (0.0, getattr(quick, percentile)))
    low, _ = slow.within.get(percentile, (getattr(slow, percentile), None))
    return high is not None and low > high


def _why_that_rate(case: Case) -> list[str]:
    look = case.question.look
    slowest = next((runner for runner in case.field if look and runner.label == look.slowest), None)
    if look is None or look.rate is None or slowest is None:
        return []
    answered = look.answered_rps[look.slowest]
    return [
        f"{exact(look.rate)} is {percent(look.rate / answered)} of what {slowest.called} answered in a closed "
        f"loop of {span(look.seconds)} before the race: of all who reached half of the best it answered least"
    ]


def _own(case: Case, outcome: Outcome) -> list[str]:
    """Tell how much of a request is the app's own, where the answer does not say it yet, and where its CPU goes."""
    if case.share is None:
        return []
    new = outcome is not Outcome.DOES_NOT_MATTER and is_known(case.share)
    lines = [_share_sentence(case, case.share)] if new else []
    return [*lines, *filter(None, [where_it_goes(case.share)])]


def _share_sentence(case: Case, share: OwnShare) -> str:
    called = next(
        (runner.called for runner in case.field if runner.label == share.contestant), share.contestant
    )
    return share_sentence(share, called)


def _steps(case: Case) -> list[str]:
    """Tell up to which rate each kept up, of every load whose rate changes."""
    found = []
    for load in case.question.loads:
        if isinstance(load.pace, Schedule):
            views = {runner.called: view for runner in case.field if (view := latency_view(runner, load))}
            found += steps_sentence(load, views)
    return found


def _ms(value: float) -> str:
    return f"{milliseconds(value)} ms"


def _set_aside_best(case: Case, fastest: float) -> list[str]:
    """Name who would have been first if it could be believed, or had not spoilt it by itself."""
    ranked = case.ranking.ranks if case.ranking else {}
    first = case.ranking.first if case.ranking else ()
    best = max((case.rates[label].mid for label in first if label in case.rates), default=fastest)
    found = []
    for runner in case.field:
        shown = case.rates.get(runner.label)
        if shown is None or runner.label in first or runner.label in case.out or not shown.mid > best > 0:
            continue
        but = "its own doing counts against it" if runner.label in ranked else "it is set aside"
        why_not = _reason(runner, case.load)
        found.append(f"{runner.called} showed {rate(shown.mid)} and would be first, but {but}: {why_not}")
    return found


def _reason(runner: Runner, load: Load) -> str:
    sentences = [
        flag.sentence
        for measurement in runner.under(load)
        for flag in measurement.flags
        if flag.severity is Severity.INVALID
    ]
    return sentences[0] if sentences else "it has no valid measurement"


def _failed(case: Case) -> list[str]:
    failed = [runner for runner in case.field if runner.failed and not runner.measured]
    return [f"{runner.called} could not be measured: {runner.failed[0].reason}" for runner in failed]


# --- The answer to one question: which contestant, by how much, and in a sentence a person can use.

SAME_CPU = 0.05
"""Two that cost the same CPU to this share are separated by memory, however sure the difference is."""


def answer(
    question: Question,
    results: Sequence[Measurement | Failed],
    stacks: Mapping[str, Stack],
    noise: Noise = SHIPPED,
    *,
    checks: Sequence[Measurement | Failed] = (),
    worker_counts: Sequence[int] = (),
    share: OwnShare | None = None,
    confidence: float = CONFIDENCE,
) -> Answer | None:
    """Return the verdict on a question, None when nothing of it was run.

    `checks` are its trials with other numbers of workers, `worker_counts` those that were to be tried: who does not
    survive them is not ranked. `share` says how much of a request is the app's own. All ranks together hold with
    `confidence`.
    """
    field = runners(question, results, stacks, noise)
    if not field:
        return None
    load = question.ranking_load
    by_label = _checks(question, field, checks, worker_counts)
    out = workers.disqualified(by_label)
    ranking = rank(
        [found for runner in field if runner.label not in out and (found := score(runner, question, load))],
        confidence,
    )
    rates = rates_of(question, field)
    costs = alone([cpu_cost(runner, load) for runner in field])
    ceilings = {runner.label: limit for runner in field if (limit := runner.ceiling(question, load))}
    case = Case(question, load, tuple(field), ranking, rates, costs, ceilings, by_label, share)
    first = _recommend(case) if ranking and not _too_slow_alone(case) else ()
    outcome = _outcome(case, ranking, first) if ranking and first else Outcome.CANNOT_TELL
    if ranking and share is not None and outcome is Outcome.DOES_NOT_MATTER:
        first = _as_good(ranking, first, share)
    best = case.runner(first[0]) if first and not _unfit(case, first[0]) else None
    rows = [
        replace(row, notes=(by_label[row.contestant].sentence, *row.notes)) if row.contestant in out else row
        for row in standings(question, field, ranking)
    ]
    conclusion = _sentence(case, outcome, first)
    measured = next((measurement for runner in field for measurement in runner.measured), None)
    scope = _scope(question, measured)
    check = by_label.get(best.label) if best else None
    shown = [
        shown_check
        for shown_check in by_label.values()
        if shown_check is check or shown_check.survived is False
    ]
    beside = [sentence(text) for text in _with_more_workers(case, best, worker_counts)]
    return Answer(
        question=question.name,
        about=question.about,
        outcome=outcome,
        best=first,
        sentence=f"{conclusion} This is {scope}." if scope else conclusion,
        why=(*beside, *why(case, outcome, first, conclusion)),
        deploy=_lines_to_paste(case, best, rows) if best and outcome is not Outcome.CANNOT_TELL else "",
        standings=tuple(rows),
        to_settle=_to_settle(case, ranking, first, outcome, results) if ranking and first else "",
        limit=_limit(case, best) if best else "",
        checks=tuple(sorted(shown, key=lambda shown_check: shown_check is not check)),
        cpus=measured.for_cpus if measured else None,
        own_share=share,
    )


def _scope(question: Question, measured: Measurement | None) -> str:
    """Return for how many CPUs the answer is: `for 1 CPU; for more: --cpus`; empty: it is not known."""
    if measured is None or not measured.placement.server_cpus:
        return ""
    option = "--cpus" if question.app is not None else "limits.cpus in its study file"
    return measured.trial.limits.scope(len(measured.placement.server_cpus), option)


def _checks(
    question: Question,
    field: Sequence[Runner],
    checks: Sequence[Measurement | Failed],
    counts: Sequence[int],
) -> dict[str, WorkerCheck]:
    own = [measurement for measurement in checks if measurement.trial.question == question.name]
    if not counts:
        return {}
    found = {
        runner.label: workers.judge_check(runner.contestant, runner.stack, counts, own) for runner in field
    }
    return {label: replace(check, contestant=label) for label, check in found.items() if check is not None}


def _with_more_workers(case: Case, best: Runner | None, counts: Sequence[int]) -> list[str]:
    """Return who is out by its check, and the result of the check of the recommended contestant."""
    found = [
        f"{case.runner(label).called} is not recommended: {case.checks[label].sentence}"
        for label in (runner.label for runner in case.field)
        if label in case.out
    ]
    if best is None or not counts:
        return found
    check = case.checks.get(best.label)
    if check is None:
        return [*found, "It was not checked with more workers, because the run ended before"]
    return [*found, check.sentence, *_fewer(best, check)]


def _fewer(best: Runner, check: WorkerCheck) -> list[str]:
    if check.scales_to is None or check.scales_to >= _workers(best):
        return []
    return [f"Fewer workers are recommended than raced: {check.scales_to}"]


def _workers(runner: Runner) -> int:
    return int(runner.contestant.knobs.get("workers", 1))


def _lines_to_paste(case: Case, best: Runner, rows: Sequence[Standing]) -> str:
    """Return what to paste; with fewer workers where more of them bring nothing."""
    check, app = case.checks.get(best.label), case.question.app
    measured = next((measurement for measurement in best.measured if measurement.command), None)
    if check and app and best.stack and measured is not None and _fewer(best, check):
        fewer = workers.with_workers(best.contestant, check.scales_to or 1)
        pasted = deploy_app(app, fewer, best.stack, measured.packages)
        return with_comment(pasted, measured, best.stack.server)
    return pasted_of(rows, [best.label])


def pasted_of(rows: Sequence[Standing], best: Sequence[str]) -> str:
    """Return what is pasted for the first of those named best; empty: there is none."""
    return next((row.deploy for row in rows if best and row.contestant == best[0]), "")


def with_paste(verdict: Verdict) -> Verdict:
    """Return a verdict that gives what to paste although nothing is settled, for those who ask for it all the same."""
    answers = [
        replace(judged, deploy=judged.deploy or pasted_of(judged.standings, judged.best))
        for judged in verdict.answers
    ]
    return replace(verdict, answers=tuple(answers))


def _limit(case: Case, best: Runner) -> str:
    """Return what limited the recommended contestant, from its block of median throughput; nothing for an open loop."""
    measured = sorted(best.counted_under(case.load), key=lambda measurement: measurement.load.throughput_rps)
    if not measured:
        return ""
    middle = measured[len(measured) // 2]
    if any(flag.kind in {FlagKind.GENERATOR_SATURATED, FlagKind.GENERATOR_LAGGED} for flag in middle.flags):
        return "the load generator, not the server: it can do at least this"
    if isinstance(case.load.pace, Closed) and _at_the_loads_limit(case, [best.label]):
        return f"the load: {at_once(case.load)} allow no more than {exact(case.ceilings[best.label].rps)}"
    if not isinstance(case.load.pace, Closed) or best.stack is None:
        return ""
    if not set(best.contestant.knobs) <= set(best.stack.knobs):
        return ""
    settings = best.stack.settings(best.contestant.knobs)
    return bounding(middle, best.stack.slots(settings), int(settings.get("workers", 1))).sentence


def _too_slow_alone(case: Case) -> str:
    """Return the rate that the only ranked contestant does not keep up with, as `500/s`; empty: it keeps up.

    Of several the fastest is recommended; a lone contestant that does not keep up with the load is not. A rate that was
    found by a look at all contestants is no demand of the user's: it may be what only those carry that are out since.
    """
    if case.ranking is None or len(case.ranking.order) != 1:
        return ""
    look = case.question.look
    runner = case.runner(case.ranking.order[0])
    for load in case.question.loads:
        if not isinstance(load.pace, Open) or (look and look.rate == load.pace.rate):
            continue
        if (view := latency_view(runner, load)) and view.fell_behind:
            return exact(load.pace.rate)
    return ""


def _recommend(case: Case) -> tuple[str, ...]:
    """Return those tied for first: who may be recommended first, of these the least CPU a request, then memory.

    Where CPU per request does not differ clearly, memory decides, and where that does not either, the estimate of CPU.
    Where several reach all that the load allows, these are the answer; a contestant that does not, and is only
    too noisy to be separated from them, is not recommended beside them.
    """
    assert case.ranking
    first = case.ranking.first
    reached = [runner.label for runner in _at_the_loads_limit(case, first)]
    if len(reached) > 1:
        first = tuple(reached)
    runners = [case.runner(label) for label in first]
    frugal = _least(first, [found for runner in runners if (found := cpu_cost(runner, case.load))])
    small = _least(frugal, [found for runner in runners if (found := memory_use(runner, case.load))])

    def place(label: str) -> tuple[bool, bool, bool, float]:
        cpu = case.costs[label].mid if label in case.costs else float("inf")
        return bool(_unfit(case, label)), label not in frugal, label not in small, cpu

    return tuple(sorted(first, key=place))


def _least(labels: Sequence[str], samples: Sequence[Sample]) -> Sequence[str]:
    """Return who does not differ clearly from the least, and who is within 5 % of it: by so much nobody decides."""
    found = [sample for sample in samples if sample.label in labels]
    if not found:
        return labels
    comparison = Comparison(found)
    least = min((sample.label for sample in found), key=lambda label: comparison.alone(label).mid)
    pairs = {sample.label: comparison.pair(sample.label, least) for sample in found}
    return [
        label
        for label, pair in pairs.items()
        if pair is None or pair.ratio.low <= 1 or pair.ratio.mid <= 1 + SAME_CPU
    ]


def _unfit(case: Case, label: str) -> str:
    """Return why a contestant may not be recommended, whatever its figures: a block of it does not count."""
    runner = case.runner(label)
    counted, scheduled = len(runner.counted_under(case.load)), len(runner.scheduled_under(case.load))
    if runner.bound_under(case.load) is Side.AT_MOST:
        spoilt = scheduled - len(runner.valid_under(case.load))
        return f"{runner.called} spoilt {spoilt} of its {scheduled} blocks by itself"
    if counted < scheduled:
        return f"only {counted} of the {scheduled} blocks of {runner.called} count"
    return ""


def _outcome(case: Case, ranking: Ranking, first: Sequence[str]) -> Outcome:
    if _unfit(case, first[0]):
        return Outcome.CANNOT_TELL
    if len(first) == 1:
        return Outcome.WINNER
    if case.share is not None and case.share.contestant in first and matters_not(case.share):
        return Outcome.DOES_NOT_MATTER
    if len(_at_the_loads_limit(case, first)) == len(first):
        return Outcome.TIE
    sure = all(
        label in ranking.to_best and equal(ranking.to_best[label])
        for label in first
        if label != ranking.order[0]
    )
    bounded = any(ranking.side(label) for label in first)
    return Outcome.TIE if sure and not bounded else Outcome.CANNOT_TELL


def _as_good(ranking: Ranking, first: Sequence[str], share: OwnShare) -> tuple[str, ...]:
    """Return those of the leaders that look no worse than the one of which the server's share is known.

    No server saves more than that share. One may cost more all the same, and who is estimated to be behind by more than
    the margin is not called as good only because the race could not tell.
    """
    pairs = {label: ranking.over(label, share.contestant) for label in first}
    return tuple(
        label
        for label, pair in pairs.items()
        if label == share.contestant or pair is None or pair.ratio.mid >= 1 - MARGIN
    )


def _at_the_loads_limit(case: Case, labels: Sequence[str]) -> list[Runner]:
    return limited_by([case.runner(label) for label in labels], case.ceilings, case.rates, "connections")


def _sentence(case: Case, outcome: Outcome, first: Sequence[str]) -> str:
    opening = f"For an endpoint that {case.question.about}: "
    if case.ranking is not None and (rate_asked := _too_slow_alone(case)):
        called = case.runner(case.ranking.order[0]).called
        return (
            f"{opening}no recommendation: {called}, the only one that could be ranked, does not keep up with "
            f"{rate_asked}."
        )
    if case.ranking is None and case.out:
        return f"{opening}no recommendation: {case.named(sorted(case.out))} did not survive more workers."
    if not first or case.ranking is None:
        return f"{opening}cannot tell, because {nothing_valid(case)}."
    names = [case.runner(label).called for label in first]
    if outcome is Outcome.WINNER:
        text = _winner(case, first[0])
    elif outcome is Outcome.TIE:
        text = f"{list_names(names, 'or')}"
    elif why_not := _unfit(case, first[0]):
        text = f"no recommendation, because {why_not}"
        text += f"; cannot tell it from {list_names(names[1:], 'or')}" if names[1:] else ", and it leads"
    elif outcome is Outcome.DOES_NOT_MATTER and case.share is not None:
        which = ": it does not matter which." if len(names) > 1 else ": no server is better by much."
        text = f"{list_names(names, 'or')}{which} {_share_sentence(case, case.share)}"
        untold = [case.runner(label).called for label in case.ranking.first if label not in first]
        whom = "them" if len(names) > 1 else "it"
        text += f"; {list_names(untold, 'and')} could not be told from {whom}" if untold else ""
    else:
        text = f"cannot tell {names[0]} from {list_names(names[1:], 'or')}{_gap(case, case.ranking, first)}"
    fastest = max((case.rates[label].mid for label in first if label in case.rates), default=0.0)
    return f"{opening}{text}{_slower(case, first, fastest)}."


def _slower(case: Case, first: Sequence[str], fastest: float) -> str:
    """Return the ceiling people most need to hear of: that of sync workers, the highest of several."""
    rest = [runner for runner in case.field if runner.label not in first]
    workers = [runner for runner in rest if runner.stack and runner.stack.slots is one_per_worker]
    reasons = (
        cannot_exceed(workers, case.ceilings, fastest)[-1:] or cannot_exceed(rest, case.ceilings, fastest)[:1]
    )
    return f"; {reasons[0]}" if reasons else ""


def _winner(case: Case, label: str) -> str:
    assert case.ranking
    called = case.runner(label).called
    # Who spoilt blocks by itself and yet looks as good is no rival: a note beside says why it is not first.
    others = [other for other in case.ranking.order if other != label and other not in case.ranking.spoilt]
    pair = case.ranking.over(others[0], label) if others else None
    if pair is None:
        only = "with a correct response" if others else "that could be ranked"
        only = "that did not spoil blocks by itself" if case.ranking.spoilt and not others else only
        return f"{called}, {_figure(case, label)}, the only one {only}"
    least = "at least " if case.ranking.side(label) is Side.AT_LEAST else ""
    text = f"{called}, {least}{lead(inverse(pair.ratio), case.runner(others[0]).called)}"
    return text if isinstance(case.load.pace, Closed) else f"{text}, in answers over mean latency"


def _gap(case: Case, ranking: Ranking, first: Sequence[str]) -> str:
    """Return the widest difference that could hide between the recommended contestant and those tied with it."""
    gaps = []
    for label in first[1:]:
        pair = ranking.comparison.pair(first[0], label)
        if pair:
            gaps.append((max(pair.ratio.high - 1, 1 - pair.ratio.low), pair.ratio, label))
    if not gaps:
        return ""
    _, widest, label = max(gaps, key=itemgetter(0))
    whom = f" to {case.runner(label).called}" if len(gaps) > 1 else ""
    return f": difference{whom} {difference(widest)}"


def _figure(case: Case, label: str) -> str:
    found: Interval | None = case.rates.get(label)
    return f"{within(found.mid, found.low, found.high)}/s" if found else "no figure"


def _to_settle(
    case: Case,
    ranking: Ranking,
    first: Sequence[str],
    outcome: Outcome,
    results: Sequence[Measurement | Failed],
) -> str:
    if outcome in (Outcome.WINNER, Outcome.DOES_NOT_MATTER):
        return ""
    reached = _at_the_loads_limit(case, first)
    if len(reached) == len(first) and isinstance(case.load.pace, Closed):
        allowed = exact(case.ceilings[first[0]].rps)
        return (
            f"{at_once(case.load)} allow no more than {allowed}: more of them, "
            "not more blocks, would separate these"
        )
    if any(ranking.side(label) is Side.AT_LEAST for label in first):
        return "the generator was the limit: more CPUs for it, not more blocks, would decide"
    pairs = [pair for label in ranking.first if (pair := ranking.to_best.get(label))]
    if not pairs:
        return ""
    loosest = max(pairs, key=lambda pair: pair.spread / pair.blocks**0.5)
    return to_settle(ranking.comparison, loosest, block_s(results, first, case.question.name))
