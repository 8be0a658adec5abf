"""A race in a terminal: the table that fills while it runs, and the verdict at its end.

In a pipe the race is one line for each trial. The answer stands last, because the end of the output is what a reader
sees first.
"""

import errno
import os
import shlex
import statistics
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from velodrome.model import quantity
from velodrome.model.claim import Experiment, Finding
from velodrome.model.load import Closed, Load
from velodrome.model.measurement import (
    UNKNOWN_LATENCY,
    Failed,
    Flag,
    FlagKind,
    Measurement,
    Placement,
    Severity,
)
from velodrome.model.profile import Profile
from velodrome.model.quantity import Interval
from velodrome.model.study import Question, Study
from velodrome.model.trial import Trial
from velodrome.model.verdict import Answer, Standing, Verdict
from velodrome.report import claims, diagnoses, names, profiles, verdict_tables
from velodrome.report.typeset import align, estimate, paragraph, plural, visible

SET_ASIDE_SHOWN = 6
ARROW = "→"


class _Console(Console):
    """Of rich, which ends the program with 1 when its reader goes away: here that code says something else."""

    def on_broken_pipe(self) -> None:
        """Let whoever ends the program hear of it. Raises BrokenPipeError."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def console(stream: TextIO) -> Console:
    """Return a console that writes control codes only where somebody looks: not in a pipe, nor under CI."""
    live = stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")
    return _Console(
        file=stream,
        force_terminal=live,
        highlight=False,
        markup=False,
        emoji=False,
        width=None if live else 120,
    )


def race_table(verdict: Verdict, width: int) -> list[Text]:
    """Return the table of all questions with their final intervals."""
    title, far = names.far_percentile(verdict)
    heads = [head if head != "p99 ms" else f"{title} ms" for head in HEADS]
    sections = [(answer_heading(answer), standing_lines(answer, far)) for answer in verdict.answers]
    return table(sections, width, heads)


def verdict_lines(verdict: Verdict, paths: Mapping[str, str], width: int) -> list[Text]:
    """Return the verdict: one paragraph a question, what was set aside, where the report is.

    `paths` maps what was written (`report`, `results`, …) to where.
    """
    found: list[Text] = []
    for answer in verdict.answers:
        found += [*answer_lines(answer, width), Text()]
    for name, finding in claims.finding_rows(verdict.findings):
        found += paragraph(f"Experiment {name}: {finding}", width, 1)
    for finding in profiles.sentences(verdict):
        found += paragraph(finding, width, 1)
    found += [Text()] if verdict.findings or verdict.profiles else []
    for note in verdict.notes:
        found += paragraph(note, width, 1, "dim")
    if verdict.finished:
        found += paragraph(f"The race ended: {verdict.finished}.", width, 1, "dim")
    if verdict.set_aside:
        found += [Text(), *_set_aside(verdict, width)]
    if verdict.suspects:
        found += [Text(), *diagnoses.texts(verdict.suspects, width)]
    judged = [*claims.lines(verdict.claims, width), *claims.published_lines(verdict.tables, width)]
    found += [*([Text()] if judged else []), *judged, Text(), *_paths(verdict, paths)]
    return found


def answer_lines(answer: Answer, width: int) -> list[Text]:
    """Return question, answer, why and the command line of one question."""
    best, beside = names.headline(answer)
    about = names.sentence_case(visible(answer.about))
    first = Text(f" {about}  {ARROW}  ") + Text(best, style="bold green")
    found = []
    if beside and len(first) + len(beside) + 4 <= width:
        found.append(first + Text(f"  ({beside})"))
    elif len(first) <= width:
        found += [first, *(paragraph(f"({beside})", width) if beside else ())]
    else:
        found += [Text(f" {about}"), Text(f" {ARROW}  ") + Text(best, style="bold green")]
        found += paragraph(f"({beside})", width) if beside else ()
    limit = f"Limited by: {answer.limit}." if answer.limit else ""
    for sentence in (names.short_sentence(answer), limit, *answer.why, answer.to_settle):
        if sentence:
            found += paragraph(visible(sentence), width)
    for line in verdict_tables.driver_lines(answer, width - 3):
        found.append(Text(f"   {line}", style="dim" if line.endswith(":") else ""))
    for sentence in verdict_tables.reach(answer):
        found += paragraph(sentence, width, style="dim")
    if answer.deploy:
        # Never broken: it is there to be copied.
        lines = [Text(visible(line)) for line in answer.deploy.split("\n")]
        found.append(Text("   deploy:  ", style="dim") + (lines[0] if len(lines) == 1 else Text()))
        found += lines if len(lines) > 1 else []
    elif answer.best and any(
        standing.deploy for standing in answer.standings if standing.contestant == answer.best[0]
    ):
        nothing = (
            "   nothing to deploy, as nothing is settled; velodrome judge --paste prints the lines anyway"
        )
        found.append(Text(nothing, style="dim"))
    return found


def show(verdict: Verdict, paths: Mapping[str, str], out: Console) -> None:
    """Write table and verdict."""
    for line in (*race_table(verdict, out.width), Text(), *verdict_lines(verdict, paths, out.width)):
        out.print(line, soft_wrap=True)


def _set_aside(verdict: Verdict, width: int) -> list[Text]:
    count = len(verdict.set_aside)
    if count == 1:
        return paragraph(f"⚑ 1 result set aside: {visible(verdict.set_aside[0])}", width, 1)
    found = [Text(f" ⚑ {plural(count, 'result')} set aside")]
    for sentence in verdict.set_aside[:SET_ASIDE_SHOWN]:
        found += paragraph(visible(sentence), width)
    if count > SET_ASIDE_SHOWN:
        found.append(Text(f"   … and {count - SET_ASIDE_SHOWN} more, all in the report"))
    return found


def _paths(verdict: Verdict, paths: Mapping[str, str]) -> list[Text]:
    size = max([len("repeat one cell"), *map(len, paths)])
    found = [
        Text(f" {name:<{size}}  ", style="dim") + Text(visible(str(path))) for name, path in paths.items()
    ]
    command = next((again(verdict, answer) for answer in verdict.answers if answer.best), "")
    if command:
        found.append(Text(f" {'repeat one cell':<{size}}  ", style="dim") + Text(command))
    return found


def again(verdict: Verdict, answer: Answer) -> str:
    """Return the command that measures the best contestant of a question again, or nothing."""
    best = answer.best[0] if answer.best else ""
    return next(
        (repeat(verdict, answer, standing) for standing in answer.standings if standing.contestant == best),
        "",
    )


def repeat(verdict: Verdict, answer: Answer, standing: Standing) -> str:
    """Return the command that measures one cell again, or nothing; quoted where a shell would read the brackets."""
    if standing.again is None:
        return ""
    if standing.again:
        return visible(standing.again)
    python = standing.python
    label = standing.contestant.removesuffix(f"@{python}") if python else standing.contestant
    words = ["velodrome", "run", verdict.study, "--only", f"{answer.question}/{label}"]
    words += ["--python", python] if python else []
    words += ["--quick"] if verdict.form == "quick" else []
    return shlex.join(words)


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
    """What the trials of one contestant in one question have given so far: of a trial that was run again, the last."""

    name: str
    ranking: Load | None
    """The load whose throughput ranks."""
    latency: Load | None
    """The load whose latency is shown."""
    measured: dict[str, Measurement] = field(default_factory=dict)
    """By the key of the trial, the latest last."""
    failures: dict[str, str] = field(default_factory=dict)
    """Reasons, by the key of the trial."""

    def add(self, result: Measurement | Failed) -> None:
        """Take in one finished trial."""
        if isinstance(result, Failed):
            self.failures[result.trial.key] = result.reason
            return
        self.failures.pop(result.trial.key, None)
        self.measured.pop(result.trial.key, None)
        self.measured[result.trial.key] = result

    @property
    def rates(self) -> list[float]:
        """Throughput that counts, of each block."""
        return [measurement.load.throughput_rps for measurement in self._ranked() if measurement.valid]

    def line(self, blocks: int) -> Line:
        """Return how it stands, `blocks` being how many there will be."""
        every = list(self.measured.values())
        flags = {
            flag.sentence: flag.severity is Severity.INVALID
            for measurement in every
            for flag in measurement.flags
        }
        rates = self.rates
        set_aside = bool(self.failures) or (bool(flags) and not rates)
        rate = ""
        if rates:
            middle = statistics.fmean(rates)
            several = len(rates) > 1
            rate = estimate(Interval(min(rates), middle, max(rates))) if several else quantity.number(middle)
        costs = [measurement.cpu_us_per_request for measurement in self._ranked() if measurement.valid]
        known = [cost for cost in costs if cost is not None]
        cpu = quantity.number(statistics.median(known)) if known else ""
        p50, p99 = self._latency()
        peak = max((measurement.server.rss_peak_bytes for measurement in every), default=0)
        memory = quantity.megabytes(peak) if peak else ""
        failed = [*self.failures.values()][-1:]
        notes = failed or sorted(flags, key=lambda sentence: not flags[sentence])
        remark = names.flags(notes, bool(rates))
        done = f"{len({measurement.trial.block for measurement in self._ranked()})}/{blocks}"
        name = f"⚑ {self.name}" if set_aside else f"  {self.name}"
        return Line((name, rate, p50, p99, cpu, memory, done), visible(remark), set_aside)

    def _ranked(self) -> list[Measurement]:
        return [
            measurement for measurement in self.measured.values() if measurement.trial.load == self.ranking
        ]

    def _latency(self) -> tuple[str, str]:
        # Percentiles of blocks are never averaged: the latest stands until the verdict merges histograms.
        last = [
            measurement.load
            for measurement in self.measured.values()
            if measurement.trial.load == self.latency
        ][-1:]
        shown = [load.due if load.due != UNKNOWN_LATENCY else load.sent for load in last]
        known = [(latency.p50, latency.p99) for latency in shown]
        p50, p99 = known[0] if known else (None, None)
        return (
            quantity.milliseconds(p50) if p50 is not None else "",
            quantity.milliseconds(p99) if p99 is not None else "",
        )


class Board:
    """Fills as trials end. Throughput is from the first closed loop, latency from the first open loop."""

    def __init__(self, study: Study, called: Mapping[str, str]) -> None:
        self.study = study
        self._called = called
        self._rows: dict[str, dict[str, Progress]] = {question.name: {} for question in study.answered}
        for question, contestant in study.pairs():
            if question.baseline is not None:
                continue
            self._rows[question.name][contestant.label] = self._row(question, contestant.label)

    def _row(self, question: Question, label: str) -> Progress:
        called = self._called.get(label, label)
        return Progress(called, question.ranking_load, names.latency_load(question))

    def add(self, result: Measurement | Failed) -> None:
        """Take in one finished trial."""
        question = next((q for q in self.study.answered if q.name == result.trial.question), None)
        if question is None:  # a baseline, which has no row
            return
        label = result.trial.contestant.label
        rows = self._rows[question.name]
        if label not in rows:
            rows[label] = self._row(question, label)
        rows[label].add(result)

    def lines(self, question: Question) -> list[Line]:
        """Return the contestants that can serve the question, fastest first, those still to run last."""
        rows = list(self._rows[question.name].values())
        rows.sort(
            key=lambda row: (
                not row.rates,
                -statistics.fmean(row.rates) if row.rates else 0.0,
                bool(row.failures),
            )
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
    latency = names.latency_load(question)
    return _title_line(question.about, question.ranking_load.label, latency.label if latency else "")


def answer_heading(answer: Answer) -> str:
    """Return the same line for a question that is answered."""
    views = [view for standing in answer.standings for view in standing.latency]
    shown = names.latency_view(views)
    latency = shown.load if shown else ""
    ranking = next((view.load for view in views if names.is_closed(view.load)), latency)
    return _title_line(answer.about, ranking, latency, names.basis(shown) if shown else names.FROM_DUE)


def _title_line(about: str, ranking: str, latency: str, basis: str = names.FROM_DUE) -> str:
    since = "latency from due" if basis == names.FROM_DUE else f"latency is {basis}"
    if not latency:
        return " · ".join(filter(None, (names.sentence_case(visible(about)), ranking and f"rate: {ranking}")))
    loads = f"rate: {ranking} · {since}: {latency}" if ranking != latency else ranking
    loads += f" · {since}" if ranking == latency and basis != names.FROM_DUE else ""
    return " · ".join(filter(None, (names.sentence_case(visible(about)), loads)))


def standing_lines(answer: Answer, far: str = "p99_ms") -> list[Line]:
    """Return the rows of a question that is answered, each with the places that it may have."""
    wide = max((len(standing.place) for standing in answer.standings), default=0)
    return [_standing_line(standing, max(wide, 2), far) for standing in answer.standings]


def _standing_line(standing: Standing, wide: int, far: str) -> Line:
    cpu = standing.cpu_us_per_request
    view = names.latency_view(standing.latency)
    cells = (
        f" {(standing.place or '⚑').rjust(wide)} {names.of_standing(standing)}",
        names.throughput(standing),
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
    """Return the table as lines no wider than `width`; a narrow table leaves memory, CPU, p50 out."""
    columns = [_align(lines) for _, lines in sections]
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


def _align(lines: Sequence[Line]) -> list[list[str]]:
    """Return the columns of one question, decimal points under each other."""
    first, *others = ([line.cells[at] for line in lines] for at in range(len(HEADS)))
    return [first, *map(align, others)]


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


FRAMES_PER_SECOND = 2
"""A frame costs about 2 ms of CPU, which the race would feel if there were many."""

TAKEN_BY_FRAME = 4
"""Lines of the screen around the table: header, an empty line, progress, the cursor's own."""


class RaceView:
    """Follows a race by plain events: started, (preparing | session_started | finished)*, verdict.

    `close` (or leaving the context) gives the terminal back, also after an error.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console(stream)
        self._clock = clock
        self._live: Live | None = None
        self._board: Board | None = None
        self._header: list[str] = []
        self._now = ""
        self._findings: list[Finding] = []
        self._trials = 0
        self._done: set[str] = set()
        self._ends_at: float | None = None

    def __enter__(self) -> "RaceView":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def started(
        self,
        study: Study,
        *,
        placement: Placement,
        python: str,
        trials: int,
        seconds: float | None,
        called: Mapping[str, str],
    ) -> None:
        """Show the header.

        `trials` are to run and take about `seconds`; `called` is how contestants read, by label.
        """
        self._board = Board(study, {label: visible(name) for label, name in called.items()})
        self._trials = trials
        self._ends_at = None if seconds is None else self._clock() + seconds
        about = "" if seconds is None else f"about {quantity.duration(seconds)}"
        facts = [placement_sentence(placement), f"Python {python}", f"seed {study.seed}", about]
        self._header = [visible(f"velodrome {study.name}"), " · ".join(filter(None, facts))]
        if self._console.is_terminal:
            self._live = Live(
                self, console=self._console, refresh_per_second=FRAMES_PER_SECOND, transient=True
            )
            self._live.start()
        else:
            for line in self._header:
                self._console.print(Text(line), soft_wrap=True)

    def preparing(self, text: str) -> None:
        """Tell what is being done before or between trials, such as installing a stack."""
        self._now = visible(text)
        self._plain(f"  {self._now}")

    def session_started(self, label: str, seconds_left: float | None) -> None:
        """Tell which server session runs now and how long the rest of the race takes."""
        self._now = visible(label)
        if seconds_left is not None:
            self._ends_at = self._clock() + seconds_left

    def experiment_started(self, experiment: Experiment) -> None:
        """Tell which experiment runs now."""
        self._now = f"experiment {visible(experiment.name)}"

    def found(self, finding: Finding) -> None:
        """Take in what an experiment came to."""
        self._findings.append(finding)
        ((name, outcome),) = claims.finding_rows([finding])
        self._plain(f"  experiment {name}: {outcome}")

    def profile_started(self, trial: Trial) -> None:
        """Tell of whom a profile is taken now."""
        self._now = f"profile of {visible(trial.cell)}"

    def profiled(self, profile: Profile) -> None:
        """Take in a profile."""
        outcome = (
            f"failed: {visible(profile.failed)}" if profile.failed else plural(profile.samples, "sample")
        )
        self._plain(f"  profile of {visible(profile.trial.cell)}: {outcome}")

    def finished(self, result: Measurement | Failed) -> None:
        """Take in a trial that ended."""
        self._done.add(result.trial.key)  # what is measured again is no further trial
        if self._board is not None:
            self._board.add(result)
        self._plain(plain_line(result, len(self._done), self._trials))

    def verdict(self, verdict: Verdict, paths: Mapping[str, str]) -> None:
        """End the live display; write the table and the verdict. `paths`: what was written, and where."""
        self.close()
        self._console.print()
        show(verdict, paths, self._console)

    def close(self) -> None:
        """Give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _plain(self, line: str) -> None:
        if self._live is None:
            self._console.print(Text(line), soft_wrap=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, height = options.max_width, console.height
        yield from header_lines(self._header, width)
        yield Text()
        if self._board is not None:
            above = [
                cut_line(f" {name}: {outcome}", width)
                for name, outcome in claims.finding_rows(self._findings)
            ]
            yield from above
            yield from fit(self._board, self._now, width, height - TAKEN_BY_FRAME - len(above))
        yield self._progress(width)

    def _progress(self, width: int) -> Text:
        share = min(len(self._done) / self._trials, 1.0) if self._trials else 0.0
        left = None if self._ends_at is None else max(0.0, self._ends_at - self._clock())
        about = "" if left is None else f"about {quantity.duration(left)} left"
        status = " · ".join(filter(None, (f"{len(self._done)}/{self._trials} trials", about, self._now)))
        size = max(10, min(40, width // 4))
        full = round(share * size)
        bar = Text(" ") + Text("━" * full, style="green") + Text("─" * (size - full), style="dim")
        room = width - size - 4
        return bar + Text(f"  {status if len(status) <= room else status[: room - 1] + '…'}")


def header_lines(header: list[str], width: int) -> list[Text]:
    """Return name and facts of the race on one line where they fit, else below each other."""
    if not header:
        return []
    name, facts = header
    if len(name) + len(facts) + 4 <= width:
        return [Text(f" {name}", style="bold") + Text(facts.rjust(width - len(name) - 2))]
    return [Text(f" {name}", style="bold"), Text(f" {facts}", overflow="fold")]


def fit(board: Board, now: str, width: int, height: int) -> list[Text]:
    """Return what `height` lines hold: the whole table, or the question that runs and a line for others."""
    questions = board.study.answered
    whole = table([(heading(q), board.lines(q)) for q in questions], width)
    if len(whole) <= height:
        return whole
    current = next((q for q in questions if now.startswith(f"{q.name}/")), questions[0])
    others = [q for q in questions if q is not current]
    shown = table([(heading(current), board.lines(current))], width)
    room = max(3, height - len(others))
    if len(shown) > room:
        shown = [*shown[: room - 1], Text(f"  … {plural(len(shown) - room + 1, 'more line')}", style="dim")]
    summary = [f" {names.sentence_case(q.about)}: {board.leader(q)}" for q in others]
    return [*shown, *(cut_line(line, width) for line in summary)]


def cut_line(line: str, width: int) -> Text:
    """Return a line that fits."""
    return Text(line if len(line) < width else line[: width - 2] + "…")


def placement_sentence(placement: Placement) -> str:
    """Return who runs where: `2 CPUs: server on 0, load on 1`."""
    if placement.apart:
        return f"server on {_cpus(set(placement.server_cpus))} of its host, load from other hosts"
    server, load = set(placement.server_cpus), set(placement.load_cpus) | set(placement.upstream_cpus)
    where = f"server on {_cpus(server)}, load on {_cpus(load)}" if server and load else "placed by the system"
    return f"{plural(len(server | load), 'CPU')}: {where}{' (shared)' if placement.shared else ''}"


def _cpus(numbers: set[int]) -> str:
    """Return `0`, `0–3` or `0,2`."""
    ordered = sorted(numbers)
    if len(ordered) > 2 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]}–{ordered[-1]}"
    return ",".join(map(str, ordered))


def plain_line(result: Measurement | Failed, done: int, trials: int) -> str:
    """Return one finished trial as a line of a log."""
    trial = result.trial
    head = f"[{done:>{len(str(trials))}}/{trials}] {trial.cell} {trial.load.label} block {trial.block + 1}"
    if isinstance(result, Failed):
        return f"{head}  FAILED ({result.failure.value}): {visible(result.reason)}"
    load = result.load
    rate = f"{quantity.number(load.throughput_rps)}/s"
    latencies, basis = (
        (load.sent, f"{load.latency_is} ({load.driver})")
        if load.due == UNKNOWN_LATENCY
        else (load.due, "from due")
    )
    if trial.app is not None and isinstance(trial.load.pace, Closed):  # as in the tables: it compares nothing
        return f"{head}  {rate}{''.join(map(_flag_note, result.flags))}"
    latency = f"p50 {quantity.milliseconds(latencies.p50)} ms  p99 {quantity.milliseconds(latencies.p99)} ms {basis}"
    return f"{head}  {rate}  {latency}{''.join(map(_flag_note, result.flags))}"


def _flag_note(flag: Flag) -> str:
    """Return a flag at the end of a line: why a trial is set aside in full, a note by its name."""
    if flag.severity is Severity.INVALID:
        return f"  ⚑ {visible(flag.sentence)}"
    return "" if flag.kind is FlagKind.TOO_SHORT else f"  ⚑ {flag.kind.value}"
