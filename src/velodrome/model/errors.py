"""Every error velodrome raises on purpose. A class composes its sentence from facts; callers pass facts only.

Exit codes: 0 fine, 1 a claim or threshold failed, 2 usage or configuration, 3 the lab itself could not run.
"""

from collections.abc import Sequence
from difflib import get_close_matches


class VelodromeError(Exception):
    """Root of all errors a user can cause or cure; `exit_code` is what the command ends with."""

    exit_code = 3


class UsageError(VelodromeError):
    """Root of the errors in what was asked (exit code 2)."""

    exit_code = 2


class UnknownNameError(UsageError):
    """Raised when a stack, recipe or study is asked for that does not exist."""

    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        plural = {"study": "studies"}.get(kind, f"{kind}s")
        hint = f" Nearest: {', '.join(near)}." if near else ""
        super().__init__(f"no {kind} is called '{name}'.{hint} All: velodrome {plural}")


class LoadRefusedError(UsageError):
    """Raised when load is asked on a host that is neither this machine nor named with `--allow-target`."""


class EngineError(VelodromeError):
    """Raised when this machine cannot carry the load asked for: file descriptors, ports, memory."""


class OutputError(VelodromeError):
    """Raised when a file of results or a report cannot be written."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"cannot write {path}: {reason}. Free some space or choose another place")
