"""What commands end with beside 0: `main` tells those of errors."""

from __future__ import annotations

import sys

from velodrome.report.typeset import visible

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


# --- Lines on standard error that tell what a search tries, numbered.


class Numbered:
    """Tells one try after the other."""

    def __init__(self) -> None:
        self._number = 0

    def preparing(self, text: str) -> None:
        """Tell what is done before the first."""
        for line in text.splitlines():
            print(f"      {visible(line)}", file=sys.stderr, flush=True)

    def tell(self, line: str) -> None:
        """Tell a try."""
        self._number += 1
        print(f" {self._number:>3}  {line}", file=sys.stderr, flush=True)
