"""The roots of all errors a user can cause or cure, and what a command ends with because of them.

Exit codes: 0 fine, 1 a claim or threshold failed, 2 usage or configuration, 3 the lab itself could not run.
"""

import sys


class VelodromeError(Exception):
    """Root of all errors a user can cause or cure; `exit_code` is what the command ends with.

    Its text has no secrets in it, whatever a server or a program said that it quotes (`model/secrets.py`).
    """

    exit_code = 3
    last_lines: tuple[str, ...] = ()
    """The end of what a program printed that failed, where that is known apart from the sentence."""

    @property
    def sentence(self) -> str:
        """The error on one line, for a cell of a table or a result; those with `last_lines` leave them out."""
        return " ".join(str(self).split())

    def __init__(self, *facts: object) -> None:
        # What was never imported knows of none, and a load has no time to import it.
        if (known := sys.modules.get("velodrome.model.secrets")) is not None:
            facts = tuple(known.mask(one) if isinstance(one, str) else one for one in facts)
        super().__init__(*facts)


class UsageError(VelodromeError):
    """Root of the errors in what was asked (exit code 2)."""

    exit_code = 2
