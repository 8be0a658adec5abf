"""The roots of all errors that a user can cause or cure, and the exit code of a command that ends with one.

Exit codes: 0 success, 1 a claim or threshold failed, 2 usage or configuration, 3 the measurement itself could not run,
4 insufficient data, 130 interrupted.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Sequence


class VelodromeError(Exception):
    """Root of all errors that a user can cause or cure; `exit_code` is what the command ends with.

    Its text contains no secrets, whatever a quoted server or program printed (`model/secrets.py`).
    """

    exit_code = 3
    last_lines: tuple[str, ...] = ()
    """The end of what a failed program printed, where that is known apart from the sentence."""

    @property
    def sentence(self) -> str:
        """The error on one line, for a cell of a table or a result; classes with `last_lines` leave those out."""
        return " ".join(str(self).split())

    def __init__(self, *facts: object) -> None:
        # If the module was never imported, there are no known secrets, and `velodrome load` has no time to import it.
        if (known := sys.modules.get("velodrome.model.secrets")) is not None:
            facts = tuple(known.mask(fact) if isinstance(fact, str) else fact for fact in facts)
        super().__init__(*facts)


class UsageError(VelodromeError):
    """Root of errors in the command, its options or its files (exit code 2)."""

    exit_code = 2


def printed(lines: Sequence[str], indent: int = 2) -> str:
    """Return the last lines of a program as the end of a message, each on a line of its own; empty without any."""
    return "".join(["" if not lines else " Its last lines:", *(f"\n{' ' * indent}{line}" for line in lines)])
