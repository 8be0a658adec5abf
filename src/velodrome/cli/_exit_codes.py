"""What commands end with beside 0: `main` tells those of errors."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from velodrome.model.search import Ending

FAILED = 1
"""A condition holds, a threshold is broken, a claim does not hold, or an SLO never holds."""
CANNOT_TELL = 4
"""None of that, but of one it cannot be told."""


def of_search(ending: Ending) -> int:
    """Return what a search ends with: of the highest rate, or of enough connections."""
    from velodrome.model.search import Ending  # noqa: PLC0415 - a load does without

    return {Ending.CONVERGED: 0, Ending.NEVER: FAILED}.get(ending, CANNOT_TELL)
