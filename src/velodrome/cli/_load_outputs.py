"""What `velodrome load` reports while it runs and when it is done, on which signals it ends, and with which exit code.

Nothing is imported at the top that the first request does not need.
"""

from __future__ import annotations

import os
import sys

from velodrome.cli._quick import Annotated, Option
from velodrome.cli._stderr import CANNOT_TELL, FAILED, of_search
from velodrome.model.errors import UsageError
from velodrome.usecases import load as usecase

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence
    from pathlib import Path
    from types import FrameType
    from typing import Any, Literal, NoReturn, TextIO

    from velodrome.model.condition import Condition, Decided
    from velodrome.report.load_live import LoadView
    from velodrome.report.load_text import Progress
    from velodrome.usecases.load import Document, Work

    Sought = Literal["rate", "connections"]

FailIf = Annotated[
    list[str] | None,
    Option(
        "--fail-if",
        help="Exit with code 1 if this condition is met, 4 if that cannot be decided: 'p99 > 50ms', "
        "'errors > 0.1% or rate < 950/s'; repeatable.",
    ),
]


def conditions(texts: Sequence[str] | None) -> tuple[Condition, ...]:
    """Return the conditions given. Raises ConditionError, UnknownLoadMetricError."""
    if not texts:
        return ()
    from velodrome.model.condition import read  # noqa: PLC0415

    return tuple(map(read, texts))


def documents(found: Sequence[Decided]) -> list[dict[str, Any]]:
    """Return the field `conditions` of a load's document."""
    if not found:
        return []
    from velodrome.report import load_text  # noqa: PLC0415

    return load_text.condition_documents(found)


def exit_code(document: Mapping[str, Any], found: Sequence[Decided]) -> int:
    """Return what the command ends with."""
    if LOST in document["flags"]:
        return UNABLE
    if document["ok"] == 0 or any(decided.holds for decided in found):
        return FAILED
    return CANNOT_TELL if any(decided.holds is None for decided in found) else 0


def tell_conditions(document: Mapping[str, Any], stream: TextIO) -> None:
    """Write what did not pass: for whoever reads the document by a program."""
    for condition in document["conditions"]:
        if condition["holds"] is not False:
            stream.write(f"velodrome: {condition['sentence']}\n")


Hdr = Annotated[
    str | None, Option("--hdr", metavar="PATH", help="Write the histograms as an HdrHistogram log.")
]
Csv = Annotated[str | None, Option("--csv", metavar="PATH", help="Write a line for each second.")]
Percentiles = Annotated[
    str | None,
    Option(
        "--percentiles",
        metavar="PATH",
        help="Write percentiles from the due time for HdrHistogram's plotters and, beside it (p.hgrm: "
        "p.sent.hgrm), from the sent time.",
    ),
]


class Files:
    """Those that were requested."""

    def __init__(self, hdr: str | None, csv: str | None, percentiles: str | None) -> None:
        self.hdr, self.csv, self.percentiles = hdr, csv, percentiles

    @property
    def given(self) -> list[tuple[str, str]]:
        """Return each with its option; one option may write two."""
        every = [("--hdr", self.hdr), ("--csv", self.csv), ("--percentiles", self.percentiles)]
        found = [(option, path) for option, path in every if path is not None]
        if self.percentiles is not None and (beside := _sent_beside(self.percentiles)):
            found.append(("--percentiles", beside))
        return found


def check_files(files: Files) -> None:
    """See that files can be written, without writing any. Raises OutputPathError for the first that cannot."""
    check_paths(files.given)


def check_paths(given: Sequence[tuple[str, Path | str | None]]) -> None:
    """See that files can be written, each with its option. Raises OutputPathError for the first that cannot."""
    taken: dict[Hashable, str] = {}
    for option, named in given:
        if named is None:
            continue
        from velodrome.report import writing  # noqa: PLC0415

        path = str(named)
        why, place = writing.obstacle(path), writing.identity(path)
        if not why and place in taken:
            why = f"{taken[place]} writes it too"
        if why:
            from velodrome.model.errors import OutputPathError  # noqa: PLC0415 - slow, and rarely needed

            raise OutputPathError(option, path, why)
        if place is not None:
            taken[place] = option


def _sent_beside(path: str) -> str:
    """Return where percentiles from sent go; empty: after those from due, as this is no file."""
    from velodrome.report import writing  # noqa: PLC0415

    if writing.is_stream(path):
        return ""
    root, suffix = os.path.splitext(path)
    return f"{root}.sent{suffix or '.txt'}"


def write_files(document: Mapping[str, Any], files: Files) -> None:
    """Write the requested files. Raises OutputError for a file that cannot be written."""
    from pathlib import Path  # noqa: PLC0415

    if files.hdr is not None:
        from velodrome.report import load_files  # noqa: PLC0415

        load_files.write_hlog(Path(files.hdr), document)
    if files.csv is not None:
        from velodrome.report import load_files  # noqa: PLC0415

        load_files.write_csv(Path(files.csv), document)
    if files.percentiles is not None:
        tables = [_percentiles(document, span) for span in ("due", "sent")]
        beside = _sent_beside(files.percentiles)
        from velodrome.report import writing  # noqa: PLC0415

        if not beside:
            writing.write(Path(files.percentiles), "".join(tables))
            return
        for path, table in zip((files.percentiles, beside), tables, strict=True):
            writing.write(Path(path), table)


def _percentiles(document: Mapping[str, Any], span: str) -> str:
    from velodrome.judge.histograms import decode  # noqa: PLC0415
    from velodrome.report import load_files  # noqa: PLC0415

    histogram = decode(document["hdr"][span])
    values = [value / 1e6 for value in histogram.highest.tolist()]
    remark = f"from {span}, milliseconds. {document['limit']['sentence']}"
    return "\n".join(load_files.percentile_lines(values, histogram.counts.tolist(), remark)) + "\n"


class LoadOutput:
    """Shows the document of a load, and writes its files."""

    def __init__(self, files: Files, as_json: bool) -> None:
        self.files, self.as_json = files, as_json

    def show(self, document: Document) -> None:
        """Show what came of a load, and then write the files: a file that cannot be written costs nothing else."""
        try:
            self._show(document)
            sys.stdout.flush()
        finally:
            write_files(document, self.files)  # also where a terminal has gone

    def _show(self, document: Document) -> None:
        if self.as_json:
            import json  # noqa: PLC0415

            print(json.dumps(document))
            tell_conditions(document, sys.stderr)
            return
        from velodrome.report import load_text  # noqa: PLC0415

        load_text.show(document, sys.stdout)


class _Shown:
    """Shows what happens; in a pipe, what it is shown with is imported after the first request.

    A terminal has a view that takes long to import, and must not do that while the load runs.
    """

    def __init__(self, url: str, span_s: float | None, as_json: bool) -> None:
        self._progress: Progress | LoadView | None = None
        if sys.stderr.isatty() and not as_json:
            from velodrome.model import secrets  # noqa: PLC0415
            from velodrome.report.load_live import view  # noqa: PLC0415

            self._progress = view(sys.stderr, secrets.mask(url), span_s)

    def event(self, event: Mapping[str, Any]) -> bool:
        """Show an event of the engine. Returns whether the load goes on."""
        if self._progress is None:
            if event["event"] != "tick":
                return True
            from velodrome.report.load_text import Progress  # noqa: PLC0415

            self._progress = Progress(sys.stderr)
        return self._progress.event(event)

    def end(self) -> None:
        """Take the view away again."""
        if self._progress is not None:
            self._progress.end()


LOST = "agent-lost"
"""Flag of a load that is not what was requested, because an agent that carried it was lost."""
UNABLE = 3
EXIT_CODE = 130
"""As of a program that SIGINT ended: 128 and its number."""


def end_on_signals() -> None:
    """Have SIGTERM and SIGHUP end the command as Ctrl-C does, until the load listens for them itself."""
    # What `signal` is made of: that itself takes longer to import than the engine to send.
    import _signal  # type: ignore[import-not-found]  # noqa: PLC0415

    for number in (_signal.SIGTERM, _signal.SIGHUP):
        if _signal.getsignal(number) == _signal.SIG_DFL:
            _signal.signal(number, _signal.default_int_handler)


class Interruption:
    """Whether the user has interrupted; `listen` from when on it is noticed."""

    def __init__(self) -> None:
        self.interrupted = False
        self._listens = False
        self._before_end: Callable[[], None] = lambda: None

    def listen(self, before_end: Callable[[], None]) -> None:
        """Take signals from here on that are not ignored or somebody else's; `before_end` gives the terminal back."""
        if self._listens:
            return
        import signal  # noqa: PLC0415

        self._listens, self._before_end = True, before_end
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, self._on_signal)

    def _on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        if self.interrupted:
            self._end_at_once()
        self.interrupted = True

    def over(self) -> None:
        """Let no further signal change the exit code, now that all is printed: the interpreter is about to end."""
        if self.interrupted:
            from velodrome.run.supervision.undisturbed import deaf  # noqa: PLC0415

            deaf()

    def _end_at_once(self) -> NoReturn:
        """End without waiting for the engine, which may be waiting for a connection."""
        try:
            self._before_end()
            print("velodrome: interrupted", file=sys.stderr, flush=True)
        finally:
            os._exit(EXIT_CODE)  # also where the terminal has gone


class Attentive:
    """Hands events of the engine on, and ends the load when somebody has interrupted."""

    def __init__(
        self,
        interruption: Interruption,
        on_event: Callable[[Mapping[str, Any]], bool],
        before_end: Callable[[], None],
    ) -> None:
        self._interruption, self._on_event, self._before_end = interruption, on_event, before_end

    def event(self, event: Mapping[str, Any]) -> bool:
        """Take an event of the engine. Returns whether the load goes on."""
        if event["event"] == "tick":
            self._interruption.listen(self._before_end)
        return self._on_event(event) and not self._interruption.interrupted


def run_load(work: Work, output: LoadOutput, interruption: Interruption) -> Document:
    """Run a load, to its end or until it is interrupted, and return its document, with its bottleneck."""
    shown = _Shown(work.spec.url, work.spec.duration_s, output.as_json)
    attentive = Attentive(interruption, shown.event, shown.end)
    document = usecase.load(work, attentive.event)
    shown.end()
    return document | {"notes": _notes(work, document, interrupted=interruption.interrupted)}


def _notes(work: Work, document: Document, *, interrupted: bool) -> list[str]:
    """Return in what a load differed from what was requested."""
    from velodrome.report import load_text as load_notes  # noqa: PLC0415

    notes = list(work.notes)
    if interrupted:
        notes.insert(0, load_notes.interruption_line(document, work.spec.duration_s))
    if work.spec.fewer_connections and (
        fewer := load_notes.fewer_connections(document, work.spec.connections)
    ):
        notes.append(fewer)
    return notes


AUTO = "auto"
SECONDS = {"rate": "3s", "connections": "2s"}
"""Length of a trial by default."""


def count(connections: str | None) -> int | None:
    """Return a number of connections; None: none was given, or it is searched."""
    if connections is None or connections == AUTO:
        return None
    if not (connections.isascii() and connections.isdigit()):
        raise UsageError(f"-c: '{connections}' is no number of connections; write 50, or auto to search it")
    return int(connections)


def search_options(
    connections: str | None, rate: str | None, requests: int | None, fail_if: Sequence[str] | None
) -> Sought | None:
    """Return what is to be searched, if anything. Raises UsageError for options that do not go with a search."""
    if AUTO not in {connections, rate}:
        return None
    if requests is not None:
        raise UsageError("a search takes the length of each trial (-z), not -n")
    if connections == AUTO and rate is not None:
        raise UsageError("-c auto searches a closed loop: leave -R out; -R auto opens what it needs")
    if connections == AUTO and fail_if:
        raise UsageError(
            "-c auto judges throughput alone: leave --fail-if out, or search a rate with -R auto"
        )
    return "rate" if rate == AUTO else "connections"


def search(
    wanted: Sought, work: Work, seconds: float, fail_if: Sequence[str], output: LoadOutput
) -> NoReturn:
    """Search instead of loading once, beside idle connections too. Ends the command."""
    # The searches bring numpy, which a single load does not wait for.
    import json  # noqa: PLC0415

    from velodrome.cli._stderr import UrlSearchLines  # noqa: PLC0415
    from velodrome.judge.search.holding import Demands  # noqa: PLC0415
    from velodrome.report import searches  # noqa: PLC0415
    from velodrome.usecases import load_search  # noqa: PLC0415

    for note in work.notes:
        sys.stderr.write(f"velodrome: {note}\n")
    failing = conditions(fail_if)
    result, best = load_search.search(wanted, work, Demands(must_not=failing), seconds, UrlSearchLines())
    if best is not None:
        best["conditions"] = documents(usecase.decide_conditions(failing, best))
    if output.as_json:
        print(json.dumps(searches.search_document(result, best, fail_if, work.spec.arrivals)))
    else:
        print("\n".join(searches.search_lines(result, best, fail_if, work.spec.arrivals)))
    if best is not None:
        write_files(best, output.files)
    sys.exit(of_search(result.ending))
