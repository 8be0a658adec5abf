"""`-R auto` and `-c auto` of `velodrome load`: whether something is to be searched, and the search."""

from __future__ import annotations

import sys

from velodrome.cli import _carrying as carrying
from velodrome.cli import _condition_options as judging
from velodrome.cli import _output_options as outputs
from velodrome.cli._telling import of_search
from velodrome.model.errors import UsageError

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, NoReturn

    Sought = Literal["rate", "connections"]

AUTO = "auto"
SECONDS = {"rate": "3s", "connections": "2s"}
"""How long a trial is, unless told."""


def count(connections: str | None) -> int | None:
    """Return a number of connections; None: none was given, or it is searched."""
    if connections is None or connections == AUTO:
        return None
    if not (connections.isascii() and connections.isdigit()):
        raise UsageError(f"-c: '{connections}' is no number of connections; write 50, or auto to search it")
    return int(connections)


def sought(
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
    wanted: Sought,
    work: carrying.Work,
    seconds: float,
    fail_if: Sequence[str],
    idle: int,
    telling: carrying.Telling,
) -> NoReturn:
    """Search instead of loading once, beside idle connections too. Ends the command."""
    # The searches bring numpy, which a single load does not wait for.
    from velodrome.cli._search import searching, text  # noqa: PLC0415

    for note in work.notes:
        sys.stderr.write(f"velodrome: {note}\n")
    conditions = judging.conditions(fail_if)
    found = searching(work, seconds, conditions)
    with carrying.beside_idle(idle, work.spec):
        result = found.rate() if wanted == "rate" else found.connections()
    if found.best is not None:
        found.best["conditions"] = judging.documents(judging.decided(conditions, found.best))
    sys.stdout.write(text(result, found.best, fail_if, telling.as_json) + "\n")
    if found.best is not None:
        outputs.write(found.best, telling.files)
    sys.exit(of_search(result.ending))
