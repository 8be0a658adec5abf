"""The roots of all errors a user can cause or cure, and what a command ends with because of them.

Exit codes: 0 fine, 1 a claim or threshold failed, 2 usage or configuration, 3 the lab itself could not run.
"""


class VelodromeError(Exception):
    """Root of all errors a user can cause or cure; `exit_code` is what the command ends with."""

    exit_code = 3


class UsageError(VelodromeError):
    """Root of the errors in what was asked (exit code 2)."""

    exit_code = 2
