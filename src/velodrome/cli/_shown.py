"""How a race or a search is shown while it runs, and the reports of a race when it has ended."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from velodrome.cli._stderr import NumberedLines, tell
from velodrome.model import quantity, results
from velodrome.model.errors import NothingMeasuredError, OutputError
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.results import Result
from velodrome.model.search import Probe, Sample
from velodrome.model.tuning import Candidate, Observation
from velodrome.model.verdict import Verdict
from velodrome.report import recommendation, searches
from velodrome.report.terminal import RaceView
from velodrome.run.racing.store import NAME
from velodrome.usecases import judge
from velodrome.usecases.events import Events
from velodrome.usecases.judge import Judged
from velodrome.usecases.race import Race, Raced


class Shown(Events):
    """Shows a race on standard output; its verdict and reports follow when it has ended."""

    def __init__(self, *, paste: bool = False) -> None:
        self._view, self._paste = RaceView(sys.stdout), paste
        self.verdict: Verdict | None = None
        for name in (
            "preparing",
            "session_started",
            "experiment_started",
            "found",
            "profile_started",
            "profiled",
        ):
            setattr(self, name, getattr(self._view, name))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._view.close()

    def said(self, sentence: str) -> None:
        """Write it to standard error."""
        tell(sentence)

    def begins(self, race: Race) -> None:
        """Show the header."""
        self._view.started(
            race.study,
            placement=race.placement,
            python=race.version,
            trials=race.trials,
            seconds=race.seconds,
            called=race.called,
        )

    def finished(self, result: Result) -> None:
        """Show a trial that ended."""
        self._view.finished(result)

    def ended(self, raced: Raced) -> None:
        """Judge the run, write its reports and show them. Raises NothingMeasuredError."""
        judged = judge.judge([raced.folder], raced.race.lab.stacks, raced.ending, paste=self._paste)
        self.verdict = verdict = judged.verdict
        write_reports(judged, self._view.verdict)
        standings = [standing for answer in verdict.answers for standing in answer.standings]
        if all(standing.failed for standing in standings) and (standings or not verdict.findings):
            raise NothingMeasuredError(str(raced.folder / NAME))


class BlockLines(Events):
    """Writes a line for each result to standard error, where a report on standard output is not disturbed."""

    def __init__(self) -> None:
        self._shown: set[Any] = set()

    def said(self, sentence: str) -> None:
        """Write it."""
        tell(sentence)

    def preparing(self, text: str) -> None:
        """Write it."""
        tell(text)

    def finished(self, result: Result) -> None:
        """Write a result; those of earlier blocks come again."""
        trial = result.trial
        if trial.key in self._shown:
            return
        self._shown.add(trial.key)
        if isinstance(result, Failed):
            text = f"failed: {result.reason}"
        else:
            aside = "" if result.valid else ", set aside"
            text = f"{quantity.rate(result.load.throughput_rps)}{aside}"
        tell(
            f"block {trial.block + 1}  {trial.question:6}  {trial.contestant.label}  {trial.load.label}  {text}"
        )


class CapacityLines(NumberedLines, Events):
    """Writes each load of a capacity search to standard error."""

    def said(self, sentence: str) -> None:
        """Write it."""
        tell(sentence)

    def tried(self, probe: Probe, measured: Measurement | None) -> None:
        """Write a rate."""
        self.line(searches.probe_line(probe, measured.load.due.p99 if measured else None))

    def sampled(self, sample: Sample, measured: Measurement | None) -> None:
        """Write a closed loop."""
        self.line(searches.sample_line(sample, measured.load.sent.p50 if measured else None))


class TuningLines(NumberedLines, Events):
    """Writes each load of a tuning to standard error."""

    def said(self, sentence: str) -> None:
        """Write it."""
        tell(sentence)

    def observed(self, candidate: Candidate, observed: Observation) -> None:
        """Write a load."""
        self.line(recommendation.load_line(candidate, observed))


def write_reports(judged: Judged, show: Callable[[Verdict, Mapping[str, str]], None]) -> None:
    """Write the reports, in every format, into the first folder, and show the verdict with what is where, by its name.

    Raises OutputError, which hides no verdict: it was shown before.
    """
    from velodrome.report import formats  # noqa: PLC0415 - a search writes none

    out, verdict = judged.folders[0], judged.verdict
    every = [trial for run in judged.runs for trial in run.trials]
    stored = stored_stacks(verdict, judged.folders)
    run = formats.JudgedRun(verdict, every, results.plain_header(judged.runs[0].header), stored)
    stored_at = {"results": str(out / NAME)}
    try:
        broken = formats.write_reports(out, run)
    except OutputError:
        show(verdict, stored_at)
        raise
    for origin, why in broken.items():
        tell(f"report format from {origin}: {why}")
    show(verdict, {"report": str(out / "report.html"), **stored_at})


def stored_stacks(verdict: Verdict, folders: Sequence[Path]) -> dict[str, str]:
    """Return the stored stacks of the profiles by the path each names; a file that is gone has no graph."""
    found = {}
    for path in (view.collapsed for view in verdict.profiles if view.collapsed):
        for folder in folders:
            file = folder / path
            if not file.resolve().is_relative_to(folder.resolve()):
                continue  # results may come from others
            with suppress(OSError):
                found[path] = file.read_text(encoding="utf-8", errors="replace")
    return found
