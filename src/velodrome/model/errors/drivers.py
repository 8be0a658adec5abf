"""Load generators: not installed, not able to, or without a report that can be trusted."""

from collections.abc import Sequence

from velodrome.model.errors.root import UsageError, VelodromeError


class DriverMissingError(UsageError):
    """Raised when a load asks for a generator that is not installed here."""

    def __init__(self, driver: str, cure: str) -> None:
        super().__init__(
            f"{driver} is not installed: it is neither on PATH nor where Go and Cargo install. {cure}"
        )


class DriverTooOldError(UsageError):
    """Raised when a generator is installed in a version that cannot be driven."""

    def __init__(self, driver: str, path: str, found: str, needed: str, cure: str) -> None:
        what = f"it is {found}" if found else "it does not tell its version"
        super().__init__(f"{driver} at {path} cannot be used: {what}, {needed} or newer is needed. {cure}")


class UnknownDriverError(UsageError):
    """Raised when a load asks for a generator that velodrome cannot drive."""

    def __init__(self, driver: str, known: Sequence[str]) -> None:
        super().__init__(f"no driver is called '{driver}'. There are: {', '.join(known)}")


class UnfitLoadError(UsageError):
    """Raised when a load asks a generator for what it cannot do: never replaced by something else in silence."""

    def __init__(self, driver: str, field: str, value: object, can: str) -> None:
        self.driver, self.field = driver, field
        super().__init__(f"{driver} cannot carry a load with {field} = {value}: {can}")


class DriverError(VelodromeError):
    """Raised when a load generator ended without a report that can be trusted; never counted as a result."""

    def __init__(self, driver: str, status: int, last_lines: Sequence[str]) -> None:
        self.last_lines = tuple(last_lines)
        how = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
        tail = "".join(f"\n  {line}" for line in last_lines)
        tail = f" Its last lines:{tail}" if tail else ""
        super().__init__(f"the load generator {driver} {how} and left no result; run the trial again.{tail}")


class DriverTimedOutError(DriverError):
    """Raised when a load generator did not end long after its load should have."""

    def __init__(self, driver: str, slack_s: float, last_lines: Sequence[str], hint: str = "") -> None:
        super().__init__(driver, -9, last_lines)
        self.args = (
            f"the load generator {driver} was still running {slack_s:g} s after its load should have ended "
            f"and was stopped; nothing it measured is kept. {hint or 'Run the trial again'}",
        )


class DriverStoppedError(DriverError):
    """Raised when a load was ended before its end, by Ctrl-C or because its server had died."""

    def __init__(self, driver: str) -> None:
        super().__init__(driver, 0, ())
        self.args = (f"the load by {driver} was ended before its end; nothing it measured is kept",)


class DriverFailedError(DriverError):
    """Raised when another load generator ended with an error of its own."""

    def __init__(self, driver: str, status: int, last_lines: Sequence[str], hint: str = "") -> None:
        super().__init__(driver, status, last_lines)
        how = f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
        said = f": {'; '.join(last_lines[-2:])}" if last_lines else " and said nothing"
        cure = hint or "Run its command by hand to see more"
        self.args = (f"{driver} {how}{said.rstrip('.')}. Nothing it measured is kept. {cure}",)


class DriverOutputError(DriverError):
    """Raised when another load generator printed something that is not understood: no figure is made of it."""

    def __init__(self, driver: str, version: str, what: str, last_lines: Sequence[str]) -> None:
        super().__init__(driver, 0, last_lines)
        self.args = (
            f"{driver} {version} printed something unforeseen: {what}. Nothing of it is kept. Install a version "
            "that `velodrome drivers` names as tried",
        )


class MostlyFailedError(DriverError):
    """Raised when most requests of another load generator failed: what it then tells as a rate is none."""

    def __init__(self, driver: str, failed: int, requests: int, examples: Sequence[str]) -> None:
        super().__init__(driver, 0, examples)
        self.failed, self.requests = failed, requests
        said = f", most often so: {examples[0]}" if examples else ""
        self.args = (
            f"{failed:,} of {requests:,} requests by {driver} failed{said.rstrip('.')}. A rate of failures "
            "measures nothing. Look at the server's log, and lower the load",
        )


class NothingAskedError(DriverError):
    """Raised when another load generator tells of no request at all: it never connected, or nothing answered."""

    def __init__(self, driver: str, span_s: float) -> None:
        super().__init__(driver, 0, ())
        self.args = (
            f"{driver} tells of no request in {span_s:.3g} s: it never connected, or no answer came in all that "
            "time. Look at the server's log, and load longer than a request takes",
        )
