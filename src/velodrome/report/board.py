"""The table of a race: what is known of each contestant so far, and its lines at any width."""

import statistics
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from velodrome.model import quantity
from velodrome.model.measurement import UNTOLD, Failed, Measurement, Severity
from velodrome.model.quantity import Interval
from velodrome.model.study import Question, Study
from velodrome.model.verdict import Answer, Standing
from velodrome.report import names
from velodrome.report.typeset import aligned, estimate, visible

HEADS = ("", "requests/s", "p50 ms", "p99 ms", "CPU µs/req", "memory MB", "blocks")
ALWAYS = (0, 1, 3, 6)
WHERE_THERE_IS_ROOM = (2, 4, 5)
ROOM_FOR_NAME = 22
ROOM_FOR_REMARK = 36


@dataclass(frozen=True)
class Line:
    """One contestant as the table shows it: seven texts and a remark."""

    cells: tuple[str, ...]
    remark: str = ""
    set_aside: bool = False


@dataclass
class Progress:
    """What the trials of one contestant in one question have given so far."""

    name: str
    rates: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)
    memory_bytes: int | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    blocks: set[int] = field(default_factory=set)
    flags: dict[str, bool] = field(default_factory=dict)
    """Sentence to whether it sets the measurement aside."""
    failed: str = ""

    def line(self, blocks: int) -> Line:
        """Return how it stands, `blocks` being how many there will be."""
        set_aside = bool(self.failed) or (bool(self.flags) and not self.rates)
        rate = ""
        if self.rates:
            middle = statistics.fmean(self.rates)
            several = len(self.rates) > 1
            rate = (
                estimate(Interval(min(self.rates), middle, max(self.rates)))
                if several
                else quantity.number(middle)
            )
        cpu = quantity.number(statistics.median(self.cpu_us)) if self.cpu_us else ""
        p50 = quantity.milliseconds(self.p50_ms) if self.p50_ms is not None else ""
        p99 = quantity.milliseconds(self.p99_ms) if self.p99_ms is not None else ""
        memory = quantity.megabytes(self.memory_bytes) if self.memory_bytes else ""
        told = (
            [self.failed]
            if self.failed
            else sorted(self.flags, key=lambda sentence: not self.flags[sentence])
        )
        remark = names.flags(told, bool(self.rates))
        done = f"{len(self.blocks)}/{blocks}"
        name = f"⚑ {self.name}" if set_aside else f"  {self.name}"
        return Line((name, rate, p50, p99, cpu, memory, done), visible(remark), set_aside)


class Board:
    """Fills as trials end. Throughput is from the first closed loop, latency from the first open loop."""

    def __init__(self, study: Study, called: Mapping[str, str]) -> None:
        self.study = study
        self._rows: dict[str, dict[str, Progress]] = {question.name: {} for question in study.questions}
        for question, contestant in study.pairs():
            label = contestant.label
            self._rows[question.name][label] = Progress(called.get(label, label))

    def add(self, result: Measurement | Failed) -> None:
        """Take in one finished trial."""
        question = next(q for q in self.study.questions if q.name == result.trial.question)
        label = result.trial.contestant.label
        row = self._rows[question.name].setdefault(label, Progress(label))
        if isinstance(result, Failed):
            row.failed = result.reason
            return
        for flag in result.flags:
            row.flags[flag.sentence] = flag.severity is Severity.INVALID
        row.memory_bytes = max(row.memory_bytes or 0, result.server.rss_peak_bytes)
        if result.trial.load == names.ranking_load(question):
            row.blocks.add(result.trial.block)
            if result.valid:
                row.rates.append(result.load.throughput_rps)
                if result.cpu_us_per_request is not None:
                    row.cpu_us.append(result.cpu_us_per_request)
        # Percentiles of blocks are never averaged: the latest stands until the verdict merges histograms.
        if result.trial.load == names.latency_load(question):
            latency = result.load.due if result.load.due != UNTOLD else result.load.sent
            row.p50_ms, row.p99_ms = latency.p50, latency.p99

    def lines(self, question: Question) -> list[Line]:
        """Return the contestants that can serve the question, fastest first, those still to run last."""
        rows = list(self._rows[question.name].values())
        rows.sort(
            key=lambda row: (not row.rates, -statistics.fmean(row.rates) if row.rates else 0.0, row.failed)
        )
        return [row.line(self.study.blocks) for row in rows]

    def leader(self, question: Question) -> str:
        """Return who is ahead, as words, or that nobody is yet."""
        first = next(iter(self.lines(question)), None)
        if first is None or not first.cells[1]:
            return "not run yet"
        return f"{first.cells[0].strip()}  {first.cells[1]}/s so far"


def heading(question: Question) -> str:
    """Return the line above a question's rows: what it is and what loads it ran under."""
    return _titled(question.about, names.ranking_load(question).label, names.latency_load(question).label)


def answer_heading(answer: Answer) -> str:
    """Return the same line for a question that is answered."""
    views = [view for standing in answer.standings for view in standing.latency]
    shown = names.latency_view(views)
    latency = shown.load if shown else ""
    ranking = next((view.load for view in views if names.is_closed(view.load)), latency)
    return _titled(answer.about, ranking, latency, names.basis(shown) if shown else names.FROM_DUE)


def _titled(about: str, ranking: str, latency: str, basis: str = names.FROM_DUE) -> str:
    told = "latency from due" if basis == names.FROM_DUE else f"latency is {basis}"
    loads = f"rate: {ranking} · {told}: {latency}" if ranking != latency else ranking
    loads += f" · {told}" if ranking == latency and basis != names.FROM_DUE else ""
    return " · ".join(filter(None, (names.sentence_case(visible(about)), loads)))


def answer_lines(answer: Answer, far: str = "p99_ms") -> list[Line]:
    """Return the rows of a question that is answered, ties and all."""
    ranks = [standing.rank for standing in answer.standings]
    return [_standing_line(standing, ranks.count(standing.rank) > 1, far) for standing in answer.standings]


def _rank(standing: Standing, tied: bool) -> str:
    """Return ` 3 `, `=1 ` for a tie, or the flag of what was set aside."""
    place = "⚑" if standing.rank is None else f"={standing.rank}" if tied else f"{standing.rank}"
    return place.rjust(3)


def _standing_line(standing: Standing, tied: bool, far: str) -> Line:
    rate, cpu = standing.throughput_rps, standing.cpu_us_per_request
    view = names.latency_view(standing.latency)
    cells = (
        f"{_rank(standing, tied)} {names.of_standing(standing)}",
        estimate(rate) if rate else quantity.MISSING,
        names.milliseconds(view, "p50_ms"),
        names.milliseconds(view, far),
        estimate(cpu) if cpu else quantity.MISSING,
        quantity.megabytes(standing.memory_bytes),
        f"{standing.blocks_valid}/{standing.blocks_done}",
    )
    remark = names.remark(standing)
    return Line(cells, visible(remark), standing.rank is None)


def table(
    sections: Sequence[tuple[str, Sequence[Line]]], width: int, heads: Sequence[str] = HEADS
) -> list[Text]:
    """Return the table as lines no wider than `width`; a narrow one leaves memory, CPU, p50 out."""
    columns = [_aligned(lines) for _, lines in sections]
    sizes = [max(map(len, (head, *(t for c in columns for t in c[at])))) for at, head in enumerate(heads)]
    chosen = _columns(sizes, width)
    sizes = [sizes[at] for at in chosen]
    sizes[0] = min(sizes[0], width - sum(sizes[1:]) - 2 * len(sizes))
    found = [Text(_row([heads[at] for at in chosen], sizes).rstrip(), style="dim")]
    for (title, lines), texts in zip(sections, columns, strict=True):
        found += [Text(f" {part}", style="bold") for part in _wrap(title, width - 1)]
        for place, line in enumerate(lines):
            found += _contestant([texts[at][place] for at in chosen], sizes, line, width)
    return found


def _aligned(lines: Sequence[Line]) -> list[list[str]]:
    """Return the columns of one question, decimal points under each other."""
    first, *others = ([line.cells[at] for line in lines] for at in range(len(HEADS)))
    return [first, *map(aligned, others)]


def _columns(sizes: Sequence[int], width: int) -> list[int]:
    """Return which columns fit beside a name that can be read."""
    chosen = list(ALWAYS)
    for column in WHERE_THERE_IS_ROOM:
        trial = sorted([*chosen, column])
        if width - sum(sizes[c] for c in trial[1:]) - 2 * len(trial) >= min(sizes[0], ROOM_FOR_NAME):
            chosen = trial
    return chosen


def _row(cells: Sequence[str], sizes: Sequence[int]) -> str:
    first = cells[0] if len(cells[0]) <= sizes[0] else cells[0][: sizes[0] - 1] + "…"
    rest = "".join(f"  {cell:>{size}}" for cell, size in zip(cells[1:], sizes[1:], strict=True))
    return f" {first:<{sizes[0]}}{rest}"


def _contestant(cells: Sequence[str], sizes: Sequence[int], line: Line, width: int) -> list[Text]:
    style = "dim" if line.set_aside else ""
    row = _row(cells, sizes)
    if not line.remark:
        return [Text(row.rstrip(), style=style)]
    room = width - len(row) - 3
    if room >= ROOM_FOR_REMARK:
        first, *others = _wrap(line.remark, room)
        below = [Text(" " * (len(row) + 2) + text, style) for text in others]
        return [Text(f"{row}  {first}", style), *below]
    return [
        Text(row.rstrip(), style),
        *(Text(f"      {text}", style) for text in _wrap(line.remark, width - 7)),
    ]


def _wrap(text: str, width: int) -> list[str]:
    """Break at spaces where that can be done; a remark never takes more than three lines."""
    return textwrap.wrap(text, max(width, 16), max_lines=3, placeholder=" …") or [""]
