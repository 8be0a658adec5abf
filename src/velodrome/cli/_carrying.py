"""Carrying one load: beside idle connections where asked for, told while it runs and when it is done.

As in `load.py` nothing is imported at the top that the first request does not need.
"""

from __future__ import annotations

import sys

from velodrome.cli import _bottleneck as bottleneck
from velodrome.cli import _condition_options as judging
from velodrome.cli import _interrupting as interrupting
from velodrome.cli import _output_options as outputs
from velodrome.run import engine

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from velodrome.report.load_live import LoadView
    from velodrome.report.load_text import Progress
    from velodrome.run.clients.idle import Idle

    Document = dict[str, Any]


class Work:
    """What the engine takes: the specification, the body that goes with it, and the right answer.

    `notes`: in what it differs from what was asked for.
    """

    def __init__(
        self, spec: Mapping[str, Any], payload: bytes, right: bytes | None, notes: Sequence[str] = ()
    ) -> None:
        self.spec, self.payload, self.right, self.notes = spec, payload, right, notes


class Telling:
    """How what comes of a load is told."""

    def __init__(self, files: outputs.Files, as_json: bool) -> None:
        self.files, self.as_json = files, as_json

    def tell(self, document: Document) -> None:
        """Show what came of a load, and then write the files: one that cannot be written costs nothing else."""
        try:
            self._show(document)
            sys.stdout.flush()
        finally:
            outputs.write(document, self.files)  # also where a terminal has gone

    def _show(self, document: Document) -> None:
        if self.as_json:
            import json  # noqa: PLC0415

            print(json.dumps(document))
            judging.tell(document, sys.stderr)
            return
        from velodrome.report import load_text  # noqa: PLC0415

        load_text.show(document, sys.stdout)


def carry(work: Work, idle: int, telling: Telling, interruption: interrupting.Interruption) -> Document:
    """Carry a load, to its end or until it is interrupted, and return its document, with whose limit it was."""
    shown = _Shown(work.spec["url"], work.spec.get("duration_s"), telling.as_json)
    watch = bottleneck.Watch(work.spec, shown.event)
    heard = interrupting.Attentive(interruption, watch.event, shown.end)

    if idle:
        document = _beside_idle(idle, work, heard.event)
    else:
        document = engine.load(work.spec, work.payload, work.right, heard.event)
    shown.end()
    notes = _notes(work, document, interrupted=interruption.asked)
    return document | watch.conclude(document) | {"notes": notes}


def _notes(work: Work, document: Document, *, interrupted: bool) -> list[str]:
    """Return in what a load differed from what was asked for."""
    from velodrome.report import load_text  # noqa: PLC0415

    notes = list(work.notes)
    if interrupted:
        notes.insert(0, load_text.interrupted(document, work.spec.get("duration_s")))
    if work.spec.get("fewer_connections") and (
        fewer := load_text.fewer_connections(document, work.spec["connections"])
    ):
        notes.append(fewer)
    return notes


def _beside_idle(count: int, work: Work, on_event: Callable[[Mapping[str, Any]], bool]) -> Document:
    from dataclasses import asdict  # noqa: PLC0415

    with beside_idle(count, work.spec) as held:
        document = engine.load(work.spec, work.payload, work.right, on_event)
        if held is not None:
            document["idle"] = asdict(held.facts())
    return document


def beside_idle(count: int, spec: Mapping[str, Any]) -> AbstractContextManager[Idle | None]:
    """Hold so many idle connections, if any are to be held."""
    from contextlib import nullcontext  # noqa: PLC0415

    if not count:
        return nullcontext()
    from velodrome.run.clients import idle  # noqa: PLC0415

    return idle.held(count, spec["url"], allow=spec["allow_target"])


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
