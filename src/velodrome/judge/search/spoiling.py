"""Which flags of a trial say that it tells nothing of the server, and whether to measure it once more.

A search asks for too much on purpose, so most flags tell of that: a listen queue that overflowed, a rate not kept,
failures. These are the answer. Others tell of the generator, of what runs beside, or of the machine at that moment.
"""

from collections.abc import Callable

from velodrome.model.flag import Flag, FlagKind, Severity
from velodrome.model.measurement import Measurement

OF_THE_LAB = frozenset(
    {
        FlagKind.GENERATOR_SATURATED,
        FlagKind.GENERATOR_LAGGED,
        FlagKind.CAPPED_BY_CONNECTIONS,
        FlagKind.DEBUG_BUILD,
        FlagKind.UPSTREAM_LATE,
        FlagKind.COMPANION_SATURATED,
        FlagKind.LINK_LATE,
        FlagKind.FOREIGN_LISTENER,
    }
)
"""Of what loads the server and stands beside it: it was the limit, and is the next time."""


def of_the_moment(measured: Measurement) -> Flag | None:
    """Return the flag for which a trial should be made again."""
    return _first(measured, lambda kind: kind.of_the_moment)


def of_the_lab(measured: Measurement) -> Flag | None:
    """Return the flag by which a trial tells of the lab and not of the server."""
    return _first(measured, OF_THE_LAB.__contains__)


def _first(measured: Measurement, meant: Callable[[FlagKind], bool]) -> Flag | None:
    return next(
        (flag for flag in measured.flags if flag.severity is Severity.INVALID and meant(flag.kind)), None
    )
