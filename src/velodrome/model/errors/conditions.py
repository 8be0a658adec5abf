"""The conditions that a load is judged by are not written right."""

from collections.abc import Sequence
from difflib import get_close_matches

from velodrome.model.errors.root import UsageError, VelodromeError


class UnknownLoadMetricError(UsageError):
    """Raised when a condition names something that a load does not tell."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        near = get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"Nearest: {', '.join(near)}. " if near else ""
        super().__init__(
            f"a load tells nothing called '{name}'. {hint}There are percentiles (p50 … p99.99), mean and max, of "
            "sent, lag, connect, tls, first_byte and last_byte as sent.p99, and errors, rate, timeout: see "
            "docs/load-results.md"
        )


class ConditionError(UsageError):
    """Raised when a condition cannot be read. `at` is where, counted from 0."""

    def __init__(self, text: str, at: int, problem: str) -> None:
        self.text, self.at = text, at
        super().__init__(
            f"the condition '{text}' cannot be read at character {at + 1}: {problem}. "
            "It is written as 'p99 > 50ms or errors > 0.1%'"
        )


class ThresholdError(UsageError):
    """Raised when a threshold or a margin of a diff cannot be read."""

    def __init__(self, text: str, problem: str) -> None:
        self.text = text
        super().__init__(f"'{text}': {problem}")


class InsufficientDataError(VelodromeError):
    """Raised when a measured figure is compared with a limit, and on which side of it it lies cannot be told."""

    exit_code = 4

    def __init__(self, found: str, cure: str = "") -> None:
        self.found, self.cure = found, cure
        super().__init__(f"insufficient data: {found}" + (f"; {cure}" if cure else ""))
