"""A load is not allowed, cannot be generated on this machine, or left no report that can be trusted."""

from __future__ import annotations

from velodrome.model.errors import UsageError, VelodromeError, quote_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class LoadRefusedError(UsageError):
    """Raised for a target that is neither loopback nor named with `--allow-target`."""


class EngineError(VelodromeError):
    """Raised when this machine cannot generate the load: file descriptors, ports, memory."""


class IdleError(VelodromeError):
    """Raised when this machine cannot hold idle connections at all."""

    def __init__(self, reason: str, last_lines: Sequence[str] = ()) -> None:
        below = "\n  " if last_lines else " "
        super().__init__(
            f"idle connections cannot be opened: {reason}.{quote_lines(last_lines)}{below}Raise the limit of "
            "open files (ulimit -n), or use fewer connections"
        )


class NothingAnsweredError(VelodromeError):
    """Raised when a search cannot begin, because even a single request gets no correct response."""

    exit_code = 1

    def __init__(self, url: str, example: str) -> None:
        detail = f": {example}" if example else ""
        super().__init__(f"no correct response from {url}{detail}. Check it with: velodrome load {url} -n 1")


class DriverMissingError(UsageError):
    """Raised when a load generator is not installed."""

    def __init__(self, driver: str, cure: str) -> None:
        super().__init__(
            f"{driver} is not installed: it is neither on PATH nor in the folders of Go and Cargo. {cure}"
        )


class DriverTooOldError(UsageError):
    """Raised when the installed version of a load generator is not supported."""

    def __init__(self, driver: str, path: str, found: str, needed: str, cure: str) -> None:
        what = f"its version is {found}" if found else "it does not report its version"
        super().__init__(f"{driver} at {path} cannot be used: {what}; {needed} or newer is required. {cure}")


class UnknownDriverError(UsageError):
    """Raised when a load names a generator that velodrome cannot run."""

    def __init__(self, driver: str, known: Sequence[str]) -> None:
        super().__init__(f"no driver is called '{driver}'. Known: {', '.join(known)}")


class UnfitLoadError(UsageError):
    """Raised when a generator cannot do what a load needs; velodrome never substitutes another load."""

    def __init__(self, driver: str, field: str, value: object, can: str) -> None:
        self.driver, self.field = driver, field
        super().__init__(f"{driver} cannot generate a load with {field} = {value}: {can}")


class DriverError(VelodromeError):
    """Raised when a load generator ended without a report that can be trusted; never counted as a result."""

    def __init__(self, driver: str, status: int, last_lines: Sequence[str]) -> None:
        self.last_lines = tuple(last_lines)
        super().__init__(
            f"the load generator {driver} {_how_it_ended(status)} and left no result; run the trial again."
            f"{quote_lines(last_lines)}"
        )


class DriverTimedOutError(DriverError):
    """Raised when a load generator was still running long after its load should have ended."""

    def __init__(self, driver: str, slack_s: float, last_lines: Sequence[str], hint: str = "") -> None:
        super().__init__(driver, -9, last_lines)
        self.args = (
            f"the load generator {driver} was still running {slack_s:g} s after its load should have ended, and was "
            f"stopped; its measurements are discarded. {hint or 'Run the trial again'}",
        )


class DriverStoppedError(DriverError):
    """Raised when a load was stopped early, by Ctrl-C or because its server had died."""

    def __init__(self, driver: str) -> None:
        super().__init__(driver, 0, ())
        self.args = (f"the load by {driver} was stopped early; its measurements are discarded",)


class DriverFailedError(DriverError):
    """Raised when another load generator ended with an error of its own."""

    def __init__(self, driver: str, status: int, last_lines: Sequence[str], hint: str = "") -> None:
        super().__init__(driver, status, last_lines)
        detail = f": {'; '.join(last_lines[-2:])}" if last_lines else " and printed nothing"
        cure = hint or "Run its command by hand to see more"
        self.args = (
            f"{driver} {_how_it_ended(status)}{detail.rstrip('.')}. Its measurements are discarded. {cure}",
        )


class DriverOutputError(DriverError):
    """Raised when the report of another load generator is not understood; no figure is made from it."""

    def __init__(self, driver: str, version: str, what: str, last_lines: Sequence[str]) -> None:
        super().__init__(driver, 0, last_lines)
        self.args = (
            f"{driver} {version} printed unexpected output: {what}. Its measurements are discarded. Install a version "
            "that `velodrome drivers` lists as tried",
        )


class MostlyFailedError(DriverError):
    """Raised when most requests of another load generator failed, so that its rate means nothing."""

    def __init__(self, driver: str, failed: int, requests: int, examples: Sequence[str]) -> None:
        super().__init__(driver, 0, examples)
        self.failed, self.requests = failed, requests
        detail = f", most often with: {examples[0]}" if examples else ""
        self.args = (
            f"{failed:,} of {requests:,} requests by {driver} failed{detail.rstrip('.')}. A rate of failures "
            "measures nothing. Check the server's log, and lower the load",
        )


class NothingAskedError(DriverError):
    """Raised when another load generator reports no request at all: no connection, or no response."""

    def __init__(self, driver: str, span_s: float) -> None:
        super().__init__(driver, 0, ())
        self.args = (
            f"{driver} reports no request in {span_s:.3g} s: it never connected, or no response arrived in that time. "
            "Check the server's log, and use a duration that is longer than a request takes",
        )


def _how_it_ended(status: int) -> str:
    return f"was killed by signal {-status}" if status < 0 else f"ended with exit status {status}"
