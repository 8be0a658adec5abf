"""Published conclusions judged again: holds, does not hold here, or cannot tell, because…

In reading order: contradictions within what was published; the cells a figure names; the number a check is about; the
check; the claim; published tables beside what was measured here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from velodrome.guest.catalog import serves
from velodrome.guest.stack import Stack
from velodrome.judge.field import (
    Runner,
    runners,
)
from velodrome.judge.metrics import TAKING, Cell
from velodrome.judge.statistics import (
    Comparison,
    Known,
    Limit,
    Missing,
    Number,
    Pair,
    Series,
    Side,
    block_s,
    more_blocks,
)
from velodrome.judge.words import one_line, sentence
from velodrome.model.claim import (
    Arithmetic,
    Check,
    Checked,
    Claim,
    Compared,
    Contradiction,
    Fact,
    Figure,
    Finding,
    Here,
    Judged,
    Judgement,
    Line,
    PublishedRow,
    PublishedTable,
)
from velodrome.model.condition import unit_of
from velodrome.model.load import Load
from velodrome.model.noise import SHIPPED, Noise
from velodrome.model.profile import Profile
from velodrome.model.quantity import Interval, Unit, exact, in_unit, number, percent, short
from velodrome.model.results import Result
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant

# --- Where published figures contradict arithmetic or each other; computed, never typed.

TOLERANCE = 0.05
"""Rounding, and what the ends of a span catch, explain this much."""


def contradictions(claim: Claim) -> tuple[str, ...]:
    """Return a sentence for each contradiction in what was published; none where the figures agree."""
    found = [beyond_littles_law(arithmetic) for arithmetic in claim.arithmetic]
    found += [beside_its_table(contradiction) for contradiction in claim.contradictions]
    return tuple(filter(None, found))


def beyond_littles_law(arithmetic: Arithmetic) -> str:
    """Return why a published rate is impossible for what it is claimed to have run on, or nothing.

    What holds a slot for W seconds and has n of them cannot do more than n ÷ W (Little 1961, docs/method.md).
    """
    wait_s = arithmetic.wait_ms / 1000
    most = arithmetic.slots / wait_s
    if arithmetic.published_rps <= most * (1 + TOLERANCE):
        return ""
    needed = arithmetic.published_rps * wait_s
    return (
        f"{arithmetic.slots} {arithmetic.what} that each wait {short(arithmetic.wait_ms)} ms cannot exceed "
        f"{arithmetic.slots} ÷ {short(wait_s)} s = {exact(most)}; the published {short(arithmetic.published_rps)}/s "
        f"takes {number(needed, 2)} of them, so it cannot have had {arithmetic.slots} {arithmetic.what} in all, or "
        f"they did not wait {short(arithmetic.wait_ms)} ms"
    )


def beside_its_table(contradiction: Contradiction) -> str:
    """Return how what a text says differs from what its own table gives, or nothing."""
    table = contradiction.a / contradiction.b
    if abs(table / contradiction.says - 1) <= TOLERANCE:
        return ""
    return (
        f"the publication says {short(contradiction.says)} for {contradiction.about}; its own table gives "
        f"{short(contradiction.a)} ÷ {short(contradiction.b)} = {number(table, 3)}"
    )


# --- Finds what a figure names: a cell with its results, an experiment with its facts, or why there is neither.


@dataclass(frozen=True)
class Evidence:
    """All that a study measured."""

    study: Study
    results: Sequence[Result]
    stacks: Mapping[str, Stack]
    findings: Sequence[Finding] = ()
    profiles: Sequence[Profile] = ()
    noise: Noise = SHIPPED
    _fields: dict[str, list[Runner]] = field(default_factory=dict)
    """By question, made once."""

    def cell(self, figure: Figure, bound_ms: float | None = None) -> Cell | Missing:
        """Return the cell a figure names, or why it has no result."""
        for question, contestant in self._every_pair():
            if figure.cell == f"{question.name}/{contestant.label}":
                break
        else:
            return Missing(f"{figure.cell} is not in this study")
        for runner in self._field(question):
            if runner.contestant == contestant:
                profiles = [
                    profile
                    for profile in self.profiles
                    if profile.trial.question == question.name and profile.trial.contestant == contestant
                ]
                return Cell(question, runner, profiles, bound_ms)
        return Missing(self._why_not(question, contestant))

    def finding(self, name: str) -> Finding | Missing:
        """Return what an experiment came to, or why it came to nothing."""
        found = [finding for finding in self.findings if finding.experiment.name == name]
        if not found:
            skipped = " (the quick form leaves it out)" if self.study.skips(name) else ""
            return Missing(f"the experiment {name} was not run{skipped}")
        last = found[-1]
        return Missing(f"the experiment {name} could not be tried: {last.failed}") if last.failed else last

    def load(self, question: Question, label: str) -> Load | Missing:
        """Return the load of a question by its label."""
        found = next((load for load in question.loads if load.label == label), None)
        return found or Missing(f"{question.name} has no load {label}")

    def _every_pair(self) -> list[tuple[Question, Contestant]]:
        return [
            (question, contestant)
            for question in self.study.questions
            for contestant in self.study.contestants
        ]

    def _field(self, question: Question) -> list[Runner]:
        if question.name not in self._fields:
            self._fields[question.name] = runners(question, self.results, self.stacks, self.noise)
        return self._fields[question.name]

    def _why_not(self, question: Question, contestant: Contestant) -> str:
        name = f"{question.name}/{contestant.label}"
        if self.study.skips(name):
            return f"the {self.study.form} form leaves {name} out"
        stack = self.stacks.get(contestant.stack)
        refused = serves(stack, question.recipe) if stack else None
        return f"{name} cannot be served: {refused}" if refused else f"{name} was not run"


# --- The number a check is about: one figure, the ratio of two, or the ratio of two ratios, with its interval.


@dataclass(frozen=True)
class Measured:
    """A number with its interval, and what would narrow it."""

    interval: Interval
    limit: Limit | None = None
    comparison: Comparison | None = None
    pair: Pair | None = None
    """Of a ratio, block by block."""
    blocks: int = 0
    cells: tuple[Cell, ...] = ()
    loads: tuple[Load, ...] = ()


def measure(check: Check, evidence: Evidence) -> Measured | Missing:
    """Return what was measured for a check of cells, or why it is unknown."""
    figures = [figure for figure in (check.figure, check.over, *(check.than or ())) if figure]
    places: list[tuple[Cell, Load]] = []
    numbers: list[Series | Known] = []
    for figure in figures:
        place = _place(figure, check, evidence)
        if isinstance(place, Missing):
            return place
        number: Number = TAKING[figure.metric].take(*place)
        if isinstance(number, Missing):
            return number
        if isinstance(number, Series):
            number = replace(number, hosts=place[0].runner.hosts)
        places.append(place)
        numbers.append(number)
    found = _combine(numbers)
    if isinstance(found, Missing):
        return found
    return replace(found, cells=tuple(cell for cell, _ in places), loads=tuple(load for _, load in places))


def _place(figure: Figure, check: Check, evidence: Evidence) -> tuple[Cell, Load] | Missing:
    if figure.metric not in TAKING:
        return Missing(f"this velodrome knows no metric '{figure.metric}'")
    cell = evidence.cell(figure, check.bound_ms)
    if isinstance(cell, Missing):
        return cell
    if not figure.load:
        return cell, TAKING[figure.metric].load(cell.question)
    load = evidence.load(cell.question, figure.load)
    return load if isinstance(load, Missing) else (cell, load)


def _combine(numbers: list[Series | Known]) -> Measured | Missing:
    if len(numbers) == 1:
        return _alone(numbers[0])
    if len(numbers) == 2:
        return _over(numbers[0], numbers[1])
    gain, other = _quotient(numbers[0], numbers[1]), _quotient(numbers[2], numbers[3])
    for found in (gain, other):
        if isinstance(found, Missing):
            return found
    assert not isinstance(gain, Missing)
    assert not isinstance(other, Missing)
    return _over(gain, other)


def _alone(number: Series | Known) -> Measured:
    if isinstance(number, Known):
        return Measured(number.interval)
    return Measured(Comparison([number.sample("of")]).alone("of"), number.limit, blocks=len(number.values))


def _over(number: Series | Known, other: Series | Known) -> Measured | Missing:
    if isinstance(number, Known) or isinstance(other, Known):
        return _apart(_alone(number), _alone(other))
    comparison = Comparison([number.sample("of"), other.sample("over")])
    pair = comparison.pair("of", "over")
    if pair is None:
        return Missing("no block holds both")
    limit = _limit(number, other)
    if isinstance(limit, Missing):
        return limit
    return Measured(pair.ratio, limit, comparison, pair, pair.blocks)


def _apart(measured: Measured, other: Measured) -> Measured | Missing:
    """Return the ratio of two numbers that no block pairs: as wide as both together allow."""
    a, b = measured.interval, other.interval
    if b.mid == 0:
        return Missing("it would be divided by nothing: the other number is 0")
    limit = _limit(measured, other)
    if isinstance(limit, Missing):
        return limit
    return Measured(Interval(a.low / b.high, a.mid / b.mid, a.high / b.low if b.low else math.inf), limit)


def _quotient(number: Series | Known, other: Series | Known) -> Series | Known | Missing:
    """Return a ratio as a number of its own, to be compared again."""
    if isinstance(number, Known) or isinstance(other, Known):
        found = _apart(_alone(number), _alone(other))
        return found if isinstance(found, Missing) else Known(found.interval)
    values = {
        block: value / other.values[block] for block, value in number.values.items() if block in other.values
    }
    if not values:
        return Missing("no block holds both")
    limit = _limit(number, other)
    if isinstance(limit, Missing):
        return limit
    noise = math.sqrt(number.noise**2 + other.noise**2)
    df = min(number.noise_df, other.noise_df)
    return Series(values, math.hypot(number.grain, other.grain), noise, limit, df, number.hosts)


def _limit(series: Series | Measured, other: Series | Measured) -> Limit | Missing | None:
    """Return how a quotient is bounded by the limits of both, if it can be."""
    above, below = series.limit, other.limit.flipped if other.limit else None
    if above and below and above.side is not below.side:
        return Missing(f"both reach the end of what was tried; {above.cure} for both")
    return above or below


# --- Judges one check: whether the whole interval lies within its bounds, wholly outside, or neither.


def judge_check(check: Check, evidence: Evidence, needs_cpus: int) -> Checked:
    """Return a check with what was measured and what that says."""
    if check.figure.experiment:
        return _by_facts(check, evidence)
    found = measure(check, evidence)
    if isinstance(found, Missing):
        return Checked(check, Judgement.CANNOT_TELL, None, reason=found.reason)
    crowded = _why_crowded(found, needs_cpus)
    if crowded:
        return Checked(check, Judgement.CANNOT_TELL, found.interval, reason=crowded, limit=_side(found))
    return _bounded(check, found, evidence)


def unit(check: Check) -> Unit:
    """Return the unit a check's number is in."""
    return Unit.RATIO if check.over else unit_of(check.figure.metric)


def _why_crowded(found: Measured, needs_cpus: int) -> str:
    """Return why too few CPUs were the server's own, or nothing."""
    for cell, load in zip(found.cells, found.loads, strict=True):
        for result in cell.runner.under(load):
            if result.server_cpus < needs_cpus:
                every = len({*result.placement.server_cpus, *result.placement.load_cpus})
                given = len(result.placement.server_cpus)
                taken = percent(result.shared_share)
                shared = f", and its load used {taken} of one of them" if result.server_cpus < given else ""
                return (
                    f"undecided on this machine: it needs {needs_cpus} CPUs for the server; here it had "
                    f"{given} of {every}{shared}"
                )
    return ""


def _bounded(check: Check, found: Measured, evidence: Evidence) -> Checked:
    interval = found.interval
    low = check.at_least if check.at_least is not None else -math.inf
    high = check.at_most if check.at_most is not None else math.inf
    inside = low <= interval.low and interval.high <= high
    outside = interval.high < low or interval.low > high
    judgement = Judgement.HOLDS if inside else Judgement.FAILS if outside else Judgement.CANNOT_TELL
    reason = "" if judgement is not Judgement.CANNOT_TELL else _to_settle(check, found, evidence)
    if found.limit and _open_end(judgement, found.limit, low, high, interval):
        judgement = Judgement.CANNOT_TELL
        reason = f"what was tried ends there: the number is {found.limit.side} this; {found.limit.cure}"
    if judgement is Judgement.FAILS:
        reason = f"all of {in_unit(interval, unit(check))} lies {_beyond(check, interval)}"
    return Checked(check, judgement, interval, reason=reason, limit=_side(found))


def _side(found: Measured) -> str:
    return found.limit.side if found.limit else ""


def _open_end(judgement: Judgement, limit: Limit, low: float, high: float, interval: Interval) -> bool:
    """Return whether a number that may be larger (or smaller) than measured could still be judged otherwise."""
    if judgement is Judgement.CANNOT_TELL:
        return True
    if limit.side is Side.AT_LEAST:
        return not (interval.low >= low and high == math.inf) and not interval.low > high
    return not (interval.high <= high and low == -math.inf) and not interval.high < low


def _beyond(check: Check, interval: Interval) -> str:
    """Return `below 1.5×` or `above 0.2×`."""
    if check.at_least is not None and interval.high < check.at_least:
        return f"below {in_unit(check.at_least, unit(check))}"
    return f"above {in_unit(check.at_most, unit(check))}"


def _to_settle(check: Check, found: Measured, evidence: Evidence) -> str:
    """Return which bound lies within the interval, and how many more blocks would tell."""
    bounds = [bound for bound in (check.at_least, check.at_most) if bound is not None]
    within = [bound for bound in bounds if found.interval.low < bound < found.interval.high] or bounds
    nearest = min(within, key=lambda bound: abs(bound - found.interval.mid))
    reason = (
        f"the interval {in_unit(found.interval, unit(check))} reaches across {in_unit(nearest, unit(check))}"
    )
    if found.pair is None or found.comparison is None or nearest <= 0 or found.interval.mid <= 0:
        return reason
    distance = abs(math.log(found.interval.mid / nearest))
    cells = {(cell.question.name, cell.runner.label) for cell in found.cells}
    seconds = sum(block_s(evidence.results, [label], question) for question, label in cells)
    return f"{reason}; {more_blocks(found.comparison, found.pair, distance, seconds)}"


def _by_facts(check: Check, evidence: Evidence) -> Checked:
    finding = evidence.finding(check.figure.experiment)
    if isinstance(finding, Missing):
        return Checked(check, Judgement.CANNOT_TELL, None, reason=one_line(finding.reason))
    names = [check.figure.metric, *([check.over.metric] if check.over else [])]
    facts: list[Fact] = []
    for name in names:
        if finding.facts.get(name) is None:
            outcome = finding.sentence if finding.facts.get("timed_out") else f"it reported no {name}"
            reason = f"the experiment {finding.experiment.name}: {outcome}"
            return Checked(check, Judgement.CANNOT_TELL, None, reason=reason)
        facts.append(finding.facts[name])
    if check.equals is not None:
        judgement = Judgement.HOLDS if facts[0] == check.equals else Judgement.FAILS
        found = {True: "yes", False: "no"}.get(facts[0]) if isinstance(facts[0], bool) else str(facts[0])
        return Checked(check, judgement, None, found or "", finding.sentence)
    return _by_number(check, facts, finding.sentence)


def _by_number(check: Check, facts: Sequence[Fact], sentence: str) -> Checked:
    if not all(isinstance(fact, int | float) for fact in facts):
        shown = ", ".join(map(str, facts))
        return Checked(check, Judgement.CANNOT_TELL, None, shown, f"no number was found, but {shown}")
    numbers = [float(fact) for fact in facts if isinstance(fact, int | float)]
    if len(numbers) == 2 and numbers[1] == 0:
        return Checked(check, Judgement.CANNOT_TELL, None, reason="it would be divided by 0")
    value = numbers[0] / numbers[1] if len(numbers) == 2 else numbers[0]
    holds = (check.at_least is None or value >= check.at_least) and (
        check.at_most is None or value <= check.at_most
    )
    judgement = Judgement.HOLDS if holds else Judgement.FAILS
    return Checked(check, judgement, Interval(value, value, value), reason=sentence)


# --- Judges claims: one holds where all checks hold that decide, and does not hold here where any of them fails.


def judge_claims(evidence: Evidence) -> tuple[Judged, ...]:
    """Return every claim of the study with its judgement."""
    return tuple(_judge(claim, evidence) for claim in evidence.study.claims)


def _judge(claim: Claim, evidence: Evidence) -> Judged:
    checked = tuple(judge_check(check, evidence, claim.needs_cpus) for check in claim.checks)
    deciding = [result for result in checked if not result.check.informs]
    judgement = _judgement(deciding)
    reason = sentence(_reason(judgement, deciding))
    shown = tuple(_beside(result, judgement) if result.check.informs else result for result in checked)
    return Judged(claim, judgement, shown, reason, tuple(map(sentence, contradictions(claim))))


def _beside(checked: Checked, judgement: Judgement) -> Checked:
    """Return a check that informs, with the reason why it comes to something else where it does."""
    if checked.judgement is judgement:
        return replace(checked, reason="")
    why = checked.reason if checked.judgement is Judgement.CANNOT_TELL else ""
    return replace(checked, reason="; ".join(filter(None, (checked.check.informs, why))))


def _judgement(checked: Sequence[Checked]) -> Judgement:
    kinds = {result.judgement for result in checked}
    if Judgement.FAILS in kinds:
        return Judgement.FAILS
    return Judgement.HOLDS if kinds == {Judgement.HOLDS} else Judgement.CANNOT_TELL


def _reason(judgement: Judgement, checked: Sequence[Checked]) -> str:
    """Return why, by the first check that decides; each check has its own reason beside it."""
    if not checked:
        return "nothing here measures it"
    if judgement is Judgement.HOLDS:
        return (
            "all that was checked holds"
            if len(checked) > 1
            else checked[0].reason or "what was checked holds"
        )
    why = [result for result in checked if result.judgement is judgement]
    first = f"{why[0].check.about}: {why[0].reason}" if why[0].check.about else why[0].reason
    return first if len(why) == 1 else f"{len(why)} of {len(checked)} checks; {first}"


# --- Sets published tables beside what was measured here, figure by figure, without judging them.


def tabulate(table: PublishedTable, evidence: Evidence) -> Compared:
    """Return every figure of a published table with what was measured here, or why there is nothing."""
    lines = [
        Line(
            row.of,
            _row_name(row, evidence),
            metric,
            published,
            tuple(
                _here(Figure(metric, row.of, load), evidence) for load in row.loads or table.loads or ("",)
            ),
        )
        for row in table.rows
        for metric, published in zip(table.metrics, row.published, strict=True)
    ]
    return Compared(table.title, tuple(lines))


def _here(figure: Figure, evidence: Evidence) -> Here:
    driver = _driver(figure, evidence)
    found = measure(Check(figure, None, None, None), evidence)
    if isinstance(found, Missing):
        return Here(figure.load, driver, None, found.reason)
    return Here(figure.load, driver, found.interval, limit=found.limit.side if found.limit else "")


def _driver(figure: Figure, evidence: Evidence) -> str:
    """Return the generator of a figure's load."""
    of_question, _, _ = figure.cell.partition("/")
    question = next((question for question in evidence.study.questions if question.name == of_question), None)
    loads = {load.label: load.driver for load in question.loads} if question else {}
    return loads.get(figure.load, "velodrome")


def _row_name(row: PublishedRow, evidence: Evidence) -> str:
    """Return how the system reads in a table, or its cell where nothing is known of it."""
    cell = evidence.cell(Figure("", row.of))
    return row.of if isinstance(cell, Missing) else cell.runner.called
