"""The answer to one question: which contestant, by how much, and in a sentence a person can use."""

from collections.abc import Mapping, Sequence

from velodrome.guest.stack import Stack, one_per_worker
from velodrome.judge import explaining
from velodrome.judge.explaining import Case
from velodrome.judge.field import Runner, cpu_cost, ranking_load, runners, score
from velodrome.judge.littles_law import cannot_exceed, limited
from velodrome.judge.ranking import Ranking, equal, rank
from velodrome.judge.settling import block_s, to_settle
from velodrome.judge.standings import alone, rates_of, standings
from velodrome.judge.words import at_once, inverse, lead, listed
from velodrome.model.interval import Interval
from velodrome.model.load import Closed
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.quantity import difference, exact, within
from velodrome.model.study import Question
from velodrome.model.verdict import Answer, Outcome

SAME_CPU = 0.05
"""Two that cost the same CPU to this share are told apart by memory."""


def answer(
    question: Question, results: Sequence[Measurement | Failed], stacks: Mapping[str, Stack]
) -> Answer | None:
    """Return the verdict on a question, None when nothing of it was run."""
    field = runners(question, results, stacks)
    if not field:
        return None
    load = ranking_load(question)
    ranking = rank([found for runner in field if (found := score(runner, question, load))])
    rates = rates_of(question, field)
    costs = alone([cpu_cost(runner, load) for runner in field])
    ceilings = {runner.label: limit for runner in field if (limit := runner.ceiling(question, load))}
    case = Case(question, load, tuple(field), ranking, rates, costs, ceilings)
    first = _recommended(case) if ranking else ()
    outcome = _outcome(case, ranking, first) if ranking else Outcome.CANNOT_TELL
    best = case.runner(first[0]) if first else None
    rows = standings(question, field, ranking, first)
    said = _sentence(case, outcome, first)
    return Answer(
        question=question.name,
        about=question.about,
        outcome=outcome,
        best=first,
        sentence=said,
        why=tuple(explaining.why(case, outcome, first, said)),
        deploy=next((row.deploy for row in rows if best and row.contestant == best.label), ""),
        standings=rows,
        to_settle=_to_settle(case, ranking, first, outcome, results) if ranking else "",
    )


def _recommended(case: Case) -> tuple[str, ...]:
    """Return those tied for first: the least CPU per request first, of equal ones the least memory.

    Where several reach all that the load allows, these are the answer; one that does not, and is only too
    noisy to be told from them, is not recommended beside them.
    """
    assert case.ranking
    first = case.ranking.first
    reached = [runner.label for runner in _at_the_loads_limit(case, first)]
    if len(reached) > 1:
        first = tuple(reached)
    cheapest = min((case.costs[label].mid for label in first if label in case.costs), default=0.0)

    def cost(label: str) -> tuple[float, float]:
        cpu = case.costs[label].mid if label in case.costs else float("inf")
        near = cpu <= cheapest * (1 + SAME_CPU)
        memory = case.runner(label).memory_bytes
        return (0.0, memory if memory is not None else float("inf")) if near else (cpu, 0.0)

    return tuple(sorted(first, key=cost))


def _outcome(case: Case, ranking: Ranking, first: Sequence[str]) -> Outcome:
    if len(first) == 1:
        return Outcome.WINNER
    if len(_at_the_loads_limit(case, first)) == len(first):
        return Outcome.TIE
    sure = all(
        label in ranking.to_best and equal(ranking.to_best[label])
        for label in first
        if label != ranking.order[0]
    )
    return Outcome.TIE if sure else Outcome.CANNOT_TELL


def _at_the_loads_limit(case: Case, labels: Sequence[str]) -> list[Runner]:
    return limited([case.runner(label) for label in labels], case.ceilings, case.rates, "connections")


def _sentence(case: Case, outcome: Outcome, first: Sequence[str]) -> str:
    opening = f"For an endpoint that {case.question.about}: "
    if not first or case.ranking is None:
        return f"{opening}cannot tell, because {explaining.nothing_valid(case)}."
    called = [case.runner(label).called for label in first]
    if outcome is Outcome.WINNER:
        said = _winner(case, first[0])
    elif outcome is Outcome.TIE:
        said = f"{listed(called, 'or')}"
    else:
        said = f"cannot tell {called[0]} from {listed(called[1:], 'or')}{_gap(case, case.ranking, first)}"
    fastest = max((case.rates[label].mid for label in first if label in case.rates), default=0.0)
    return f"{opening}{said}{_slower(case, first, fastest)}."


def _slower(case: Case, first: Sequence[str], fastest: float) -> str:
    """Return the ceiling people most need to hear of: that of sync workers, the highest of several."""
    rest = [one for one in case.field if one.label not in first]
    workers = [one for one in rest if one.stack and one.stack.slots is one_per_worker]
    told = (
        cannot_exceed(workers, case.ceilings, fastest)[-1:] or cannot_exceed(rest, case.ceilings, fastest)[:1]
    )
    return f"; {told[0]}" if told else ""


def _winner(case: Case, label: str) -> str:
    assert case.ranking
    called = case.runner(label).called
    others = [other for other in case.ranking.order if other != label]
    pair = case.ranking.to_best.get(others[0]) if others else None
    if pair is None:
        only = "that gave a right answer" if others else "that could be ranked"
        return f"{called}, {_figure(case, label)}, the only one {only}"
    said = f"{called}, {lead(inverse(pair.ratio), case.runner(others[0]).called)}"
    return said if isinstance(case.load.pace, Closed) else f"{said}, in answers over mean latency"


def _gap(case: Case, ranking: Ranking, first: Sequence[str]) -> str:
    """Return the widest difference that could hide between the recommended one and those tied with it."""
    gaps = []
    for label in first[1:]:
        pair = ranking.comparison.pair(first[0], label)
        if pair:
            gaps.append((max(pair.ratio.high - 1, 1 - pair.ratio.low), pair.ratio, label))
    if not gaps:
        return ""
    _, widest, label = max(gaps)
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
    if outcome is Outcome.WINNER:
        return ""
    reached = _at_the_loads_limit(case, first)
    if len(reached) == len(first) and isinstance(case.load.pace, Closed):
        allowed = exact(case.ceilings[first[0]].rps)
        return (
            f"{at_once(case.load)} allow no more than {allowed}: more of them, "
            "not more blocks, would tell these apart"
        )
    pairs = [pair for label in ranking.first if (pair := ranking.to_best.get(label))]
    if not pairs:
        return ""
    loosest = max(pairs, key=lambda pair: pair.spread / pair.blocks**0.5)
    return to_settle(ranking.comparison, loosest, block_s(results, first, case.question.name))
