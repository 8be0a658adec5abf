"""How many requests a log has per second: on average, and at most within one second and within ten.

Lines may be out of order by as much as the slowest request took, so counts stay open for a while; what is older is
closed, so that a log of years takes no more memory than one of minutes.
"""

from collections import deque
from dataclasses import dataclass, field

OPEN_S = 120
"""Apache writes a line when the request has ended, with the time when it began."""
LONG_S = 10


@dataclass
class Rates:
    """Counts as lines come in."""

    timed: int = 0
    """Lines that say a time."""
    first: int | None = None
    last: int | None = None
    _peak: int = 0
    _long_peak: int = 0
    _open: dict[int, int] = field(default_factory=dict)
    _latest: int = 0
    _closed: deque[tuple[int, int]] = field(default_factory=deque)
    """Of the last ten seconds that were closed, and their counts."""

    def add(self, second: int | None) -> None:
        """Count a request."""
        if second is None:
            return
        self.timed += 1
        self.first = second if self.first is None else min(self.first, second)
        self.last = second if self.last is None else max(self.last, second)
        if second not in self._open:
            self._move_to(second)
        self._open[second] = self._open.get(second, 0) + 1

    @property
    def seconds(self) -> int:
        """From the first second to the last, both counted; 0 where no line says a time."""
        return 0 if self.first is None or self.last is None else self.last - self.first + 1

    @property
    def mean_rps(self) -> float | None:
        """Requests per second of the whole span."""
        return self.timed / self.seconds if self.seconds else None

    @property
    def peak_rps(self) -> float | None:
        """In the second that has most."""
        self._close(until=None)
        return float(self._peak) if self.timed else None

    @property
    def long_peak_rps(self) -> float | None:
        """In the ten seconds on end that have most; None for a log that is shorter."""
        self._close(until=None)
        return self._long_peak / LONG_S if self.seconds >= LONG_S else None

    def _move_to(self, second: int) -> None:
        """Make room for a second that has no count yet."""
        if not self._open or second < self._latest - OPEN_S:
            # Another log behind the first, which is older: it is begun anew.
            self._close(until=None)
            self._latest = second
        elif second > self._latest:
            self._latest = second
            if len(self._open) > OPEN_S:
                self._close(until=second - OPEN_S)

    def _close(self, until: int | None) -> None:
        """Count the seconds before `until` for good, all where it is None."""
        for second in sorted(self._open):
            if until is not None and second >= until:
                return
            count = self._open.pop(second)
            self._peak = max(self._peak, count)
            if self._closed and self._closed[-1][0] >= second:
                self._closed.clear()
            self._closed.append((second, count))
            while self._closed[0][0] <= second - LONG_S:
                self._closed.popleft()
            self._long_peak = max(self._long_peak, sum(count for _, count in self._closed))
