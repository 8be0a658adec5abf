"""Judges one check: whether the whole interval lies within its bounds, wholly outside, or neither."""

import math
from collections.abc import Sequence

from velodrome.judge.claims.finding_cells import Evidence
from velodrome.judge.claims.measuring import Measured, measure
from velodrome.judge.figures.number import Limit, Missing, Side
from velodrome.judge.settling import block_s, more_blocks
from velodrome.model.claim import Check, Checked, Judgement
from velodrome.model.experiment import Fact
from velodrome.model.interval import Interval
from velodrome.model.metric import Unit, unit_of
from velodrome.model.quantity import in_unit


def check(one: Check, evidence: Evidence, needs_cpus: int) -> Checked:
    """Return a check with what was measured and what that says."""
    if one.figure.experiment:
        return _by_facts(one, evidence)
    found = measure(one, evidence)
    if isinstance(found, Missing):
        return Checked(one, Judgement.CANNOT_TELL, None, reason=found.reason)
    crowded = _crowded(found, needs_cpus)
    if crowded:
        return Checked(one, Judgement.CANNOT_TELL, found.interval, reason=crowded, limit=_side(found))
    return _bounded(one, found, evidence)


def unit(one: Check) -> Unit:
    """Return the unit a check's number is in."""
    return Unit.RATIO if one.over else unit_of(one.figure.metric)


def _crowded(found: Measured, needs_cpus: int) -> str:
    """Return why too few CPUs were the server's own, or nothing."""
    for cell, load in zip(found.cells, found.loads, strict=True):
        for result in cell.runner.under(load):
            if result.placement.own_cpus < needs_cpus:
                every = len({*result.placement.server_cpus, *result.placement.load_cpus})
                shared = " and shared with the generator" if result.placement.shared else ""
                given = len(result.placement.server_cpus)
                return (
                    f"cannot be told on this machine: it needs {needs_cpus} CPUs for the server alone; here it had "
                    f"{given} of {every}{shared}"
                )
    return ""


def _bounded(one: Check, found: Measured, evidence: Evidence) -> Checked:
    interval = found.interval
    low = one.at_least if one.at_least is not None else -math.inf
    high = one.at_most if one.at_most is not None else math.inf
    inside = low <= interval.low and interval.high <= high
    outside = interval.high < low or interval.low > high
    judgement = Judgement.HOLDS if inside else Judgement.FAILS if outside else Judgement.CANNOT_TELL
    reason = "" if judgement is not Judgement.CANNOT_TELL else _to_settle(one, found, evidence)
    if found.limit and _open_end(judgement, found.limit, low, high, interval):
        judgement = Judgement.CANNOT_TELL
        reason = f"what was tried ends there: the number is {found.limit.side} this; {found.limit.cure}"
    if judgement is Judgement.FAILS:
        reason = f"all of {in_unit(interval, unit(one))} lies {_beyond(one, interval)}"
    return Checked(one, judgement, interval, reason=reason, limit=_side(found))


def _side(found: Measured) -> str:
    return found.limit.side if found.limit else ""


def _open_end(judgement: Judgement, limit: Limit, low: float, high: float, interval: Interval) -> bool:
    """Return whether a number that may be larger (or smaller) than measured could still be judged otherwise."""
    if judgement is Judgement.CANNOT_TELL:
        return True
    if limit.side is Side.AT_LEAST:
        return not (interval.low >= low and high == math.inf) and not interval.low > high
    return not (interval.high <= high and low == -math.inf) and not interval.high < low


def _beyond(one: Check, interval: Interval) -> str:
    """Return `below 1.5×` or `above 0.2×`."""
    if one.at_least is not None and interval.high < one.at_least:
        return f"below {in_unit(one.at_least, unit(one))}"
    return f"above {in_unit(one.at_most, unit(one))}"


def _to_settle(one: Check, found: Measured, evidence: Evidence) -> str:
    """Return which bound lies within the interval, and how many more blocks would tell."""
    bounds = [bound for bound in (one.at_least, one.at_most) if bound is not None]
    within = [bound for bound in bounds if found.interval.low < bound < found.interval.high] or bounds
    nearest = min(within, key=lambda bound: abs(bound - found.interval.mid))
    told = f"the interval {in_unit(found.interval, unit(one))} reaches across {in_unit(nearest, unit(one))}"
    if found.pair is None or found.comparison is None or nearest <= 0 or found.interval.mid <= 0:
        return told
    distance = abs(math.log(found.interval.mid / nearest))
    cells = {(cell.question.name, cell.runner.label) for cell in found.cells}
    seconds = sum(block_s(evidence.results, [label], question) for question, label in cells)
    return f"{told}; {more_blocks(found.comparison, found.pair, distance, seconds)}"


def _by_facts(one: Check, evidence: Evidence) -> Checked:
    finding = evidence.finding(one.figure.experiment)
    if isinstance(finding, Missing):
        return Checked(one, Judgement.CANNOT_TELL, None, reason=finding.reason)
    names = [one.figure.metric, *([one.over.metric] if one.over else [])]
    facts: list[Fact] = []
    for name in names:
        if finding.facts.get(name) is None:
            said = finding.sentence if finding.facts.get("timed_out") else f"it told no {name}"
            reason = f"the experiment {finding.experiment.name}: {said}"
            return Checked(one, Judgement.CANNOT_TELL, None, reason=reason)
        facts.append(finding.facts[name])
    if one.equals is not None:
        judgement = Judgement.HOLDS if facts[0] == one.equals else Judgement.FAILS
        found = {True: "yes", False: "no"}.get(facts[0]) if isinstance(facts[0], bool) else str(facts[0])
        return Checked(one, judgement, None, found or "", finding.sentence)
    return _by_number(one, facts, finding.sentence)


def _by_number(one: Check, facts: Sequence[Fact], sentence: str) -> Checked:
    if not all(isinstance(fact, int | float) for fact in facts):
        shown = ", ".join(map(str, facts))
        return Checked(one, Judgement.CANNOT_TELL, None, shown, f"no number was found, but {shown}")
    numbers = [float(fact) for fact in facts if isinstance(fact, int | float)]
    if len(numbers) == 2 and numbers[1] == 0:
        return Checked(one, Judgement.CANNOT_TELL, None, reason="it would be divided by 0")
    value = numbers[0] / numbers[1] if len(numbers) == 2 else numbers[0]
    holds = (one.at_least is None or value >= one.at_least) and (one.at_most is None or value <= one.at_most)
    judgement = Judgement.HOLDS if holds else Judgement.FAILS
    return Checked(one, judgement, Interval(value, value, value), reason=sentence)
