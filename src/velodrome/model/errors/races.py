"""A race cannot begin, was ended, or ended without what was wanted of it."""

from collections.abc import Sequence

from velodrome.model.errors.root import VelodromeError


class BusyError(VelodromeError):
    """Raised when another velodrome measures on this machine: two at once would measure each other."""

    def __init__(self, holder: str, waited_s: float) -> None:
        waited = f" still, after {waited_s:.0f} s" if waited_s >= 1 else ""
        super().__init__(
            f"another velodrome measures on this machine{waited} ({holder or 'which one is not known'}). "
            "Wait for it to end, or wait in line with --wait"
        )


class LockError(VelodromeError):
    """Raised when the file by which measurements wait for each other cannot be used as one."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(
            f"{path} cannot be the lock of this machine's measurements: {reason}. Name another file in VELODROME_LOCK"
        )


class RaceInterruptedError(VelodromeError):
    """Raised when a race was stopped by Ctrl-C, SIGTERM or SIGHUP; what was finished is kept."""

    exit_code = 130

    def __init__(self, path: str, done: int, total: int, cure: str = "Go on with --resume") -> None:
        self.path, self.done, self.total = path, done, total
        super().__init__(f"stopped; {done} of {total} trials are kept in {path}. {cure}")


class NothingMeasuredError(VelodromeError):
    """Raised at the end of a race in which no contestant could be measured."""

    def __init__(self, path: str) -> None:
        super().__init__(f"no contestant could be measured; why is told above and in {path}")


class ClaimsFailedError(VelodromeError):
    """Raised at the end of a run with `--strict` in which a claim did not hold (exit code 1)."""

    exit_code = 1

    def __init__(self, study: str, claims: Sequence[str]) -> None:
        self.claims = tuple(claims)
        verb = "does" if len(claims) == 1 else "do"
        super().__init__(f"{', '.join(claims)} of {study} {verb} not hold here; why is told above")
