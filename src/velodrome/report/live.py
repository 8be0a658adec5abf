"""The race while it runs: a table that fills as trials end and the time left; in a pipe, one line a trial."""

import time
from collections.abc import Callable, Mapping
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from velodrome.model import quantity
from velodrome.model.claim import Experiment, Finding
from velodrome.model.measurement import UNTOLD, Failed, Flag, FlagKind, Measurement, Placement, Severity
from velodrome.model.profile import Profile
from velodrome.model.study import Study
from velodrome.model.trial import Trial
from velodrome.model.verdict import Verdict
from velodrome.report import board, findings, names, terminal
from velodrome.report.typeset import plural, visible

FRAMES_PER_SECOND = 2
"""A frame costs about 2 ms of CPU, which the race would feel if there were many."""

TAKEN_BY_FRAME = 4
"""Lines of the screen around the table: header, an empty line, progress, the cursor's own."""


class RaceView:
    """Follows a race by plain events: started, (preparing | heat_started | finished)*, verdict.

    `close` (or leaving the context) gives the terminal back, also after an error.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = terminal.console(stream)
        self._clock = clock
        self._live: Live | None = None
        self._board: board.Board | None = None
        self._header: list[str] = []
        self._now = ""
        self._findings: list[Finding] = []
        self._trials = self._done = 0
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
        self._board = board.Board(study, {label: visible(name) for label, name in called.items()})
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

    def heat_started(self, label: str, seconds_left: float | None) -> None:
        """Tell which heat runs now and how long the rest of the race takes."""
        self._now = visible(label)
        if seconds_left is not None:
            self._ends_at = self._clock() + seconds_left

    def experiment_started(self, experiment: Experiment) -> None:
        """Tell which experiment runs now."""
        self._now = f"experiment {visible(experiment.name)}"

    def found(self, finding: Finding) -> None:
        """Take in what an experiment came to."""
        self._findings.append(finding)
        ((name, told),) = findings.rows([finding])
        self._plain(f"  experiment {name}: {told}")

    def profile_started(self, trial: Trial) -> None:
        """Tell of whom a profile is taken now."""
        self._now = f"profile of {visible(trial.cell)}"

    def profiled(self, profile: Profile) -> None:
        """Take in a profile."""
        told = f"failed: {visible(profile.failed)}" if profile.failed else plural(profile.samples, "sample")
        self._plain(f"  profile of {visible(profile.trial.cell)}: {told}")

    def finished(self, result: Measurement | Failed) -> None:
        """Take in a trial that ended."""
        self._done += 1
        if self._board is not None:
            self._board.add(result)
        self._plain(plain_line(result, self._done, self._trials))

    def verdict(self, verdict: Verdict, paths: Mapping[str, str]) -> None:
        """End the live display; write the table and the verdict. `paths`: what was written, and where."""
        self.close()
        self._console.print()
        terminal.show(verdict, paths, self._console)

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
            above = [cut(f" {name}: {told}", width) for name, told in findings.rows(self._findings)]
            yield from above
            yield from fitted(self._board, self._now, width, height - TAKEN_BY_FRAME - len(above))
        yield self._progress(width)

    def _progress(self, width: int) -> Text:
        share = min(self._done / self._trials, 1.0) if self._trials else 0.0
        left = None if self._ends_at is None else max(0.0, self._ends_at - self._clock())
        about = "" if left is None else f"about {quantity.duration(left)} left"
        told = " · ".join(filter(None, (f"{self._done}/{self._trials} trials", about, self._now)))
        size = max(10, min(40, width // 4))
        full = round(share * size)
        bar = Text(" ") + Text("━" * full, style="green") + Text("─" * (size - full), style="dim")
        room = width - size - 4
        return bar + Text(f"  {told if len(told) <= room else told[: room - 1] + '…'}")


def header_lines(header: list[str], width: int) -> list[Text]:
    """Return name and facts of the race on one line where they fit, else below each other."""
    if not header:
        return []
    name, facts = header
    if len(name) + len(facts) + 4 <= width:
        return [Text(f" {name}", style="bold") + Text(facts.rjust(width - len(name) - 2))]
    return [Text(f" {name}", style="bold"), Text(f" {facts}", overflow="fold")]


def fitted(table: board.Board, now: str, width: int, height: int) -> list[Text]:
    """Return what `height` lines hold: the whole table, or the question that runs and a line for others."""
    questions = table.study.questions
    whole = board.table([(board.heading(q), table.lines(q)) for q in questions], width)
    if len(whole) <= height:
        return whole
    current = next((q for q in questions if now.startswith(f"{q.name}/")), questions[0])
    others = [q for q in questions if q is not current]
    shown = board.table([(board.heading(current), table.lines(current))], width)
    room = max(3, height - len(others))
    if len(shown) > room:
        shown = [*shown[: room - 1], Text(f"  … {plural(len(shown) - room + 1, 'more line')}", style="dim")]
    summary = [f" {names.sentence_case(q.about)}: {table.leader(q)}" for q in others]
    return [*shown, *(cut(line, width) for line in summary)]


def cut(line: str, width: int) -> Text:
    """Return a line that fits."""
    return Text(line if len(line) < width else line[: width - 2] + "…")


def placement_sentence(placement: Placement) -> str:
    """Return who runs where: `2 CPUs: server on 0, load on 1`."""
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
    told, basis = (
        (load.sent, f"{load.latency_is} ({load.driver})") if load.due == UNTOLD else (load.due, "from due")
    )
    latency = f"p50 {quantity.milliseconds(told.p50)} ms  p99 {quantity.milliseconds(told.p99)} ms {basis}"
    return f"{head}  {rate}  {latency}{''.join(map(_told, result.flags))}"


def _told(flag: Flag) -> str:
    """Return a flag at the end of a line: why a trial is set aside in full, a note by its name."""
    if flag.severity is Severity.INVALID:
        return f"  ⚑ {visible(flag.sentence)}"
    return "" if flag.kind is FlagKind.TOO_SHORT else f"  ⚑ {flag.kind.value}"
