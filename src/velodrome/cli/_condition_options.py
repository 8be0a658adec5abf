"""The options of `velodrome load` that judge it, and the exit code they come to.

What reads and judges conditions is imported when there are any: it must not delay the first request of other loads.
"""

from __future__ import annotations

from velodrome.cli._declared import Annotated, Option
from velodrome.cli._exit_codes import CANNOT_TELL, FAILED

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TextIO

    from velodrome.model.condition import Condition, Decided

FailIf = Annotated[
    list[str] | None,
    Option(
        "--fail-if",
        help="'p99 > 50ms', 'errors > 0.1% or rate < 950/s': end with exit code 1 where it holds, 4 where that "
        "cannot be told; repeatable.",
    ),
]


def conditions(texts: Sequence[str] | None) -> tuple[Condition, ...]:
    """Return the conditions given. Raises ConditionError, UnknownLoadMetricError."""
    if not texts:
        return ()
    from velodrome.model.condition import read  # noqa: PLC0415

    return tuple(map(read, texts))


def decided(asked: Sequence[Condition], document: Mapping[str, Any]) -> tuple[Decided, ...]:
    """Return what became of each in a load."""
    if not asked:
        return ()
    from velodrome.judge.load_figures import figures  # noqa: PLC0415
    from velodrome.model.condition import decide  # noqa: PLC0415

    look_up = figures(document)
    return tuple(decide(condition, look_up) for condition in asked)


def documents(found: Sequence[Decided]) -> list[dict[str, Any]]:
    """Return the field `conditions` of a load's document."""
    if not found:
        return []
    from velodrome.report import conditions as told  # noqa: PLC0415

    return told.documents(found)


def exit_code(document: Mapping[str, Any], found: Sequence[Decided]) -> int:
    """Return what the command ends with."""
    if document["ok"] == 0 or any(one.holds for one in found):
        return FAILED
    return CANNOT_TELL if any(one.holds is None for one in found) else 0


def tell(document: Mapping[str, Any], stream: TextIO) -> None:
    """Write what did not pass: for whoever reads the document by a program."""
    for one in document["conditions"]:
        if one["holds"] is not False:
            stream.write(f"velodrome: {one['sentence']}\n")
