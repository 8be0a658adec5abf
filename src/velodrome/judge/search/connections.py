"""The number of connections from which on a closed loop's throughput stops rising.

    found = enough_connections(lambda count: Load(count, rps=…), ConnectionSearch())
    found.ending, found.connections     # converged, Interval(28, 32, 40)

The number is doubled until throughput rises no more; the first number with 95 % of the most is then narrowed down, and
those around it are measured in further blocks, each block once around, so that a machine that slows down slows all
alike. What is compared is their ratio to the number with the most, block by block; its spread is pooled over all
numbers and the interval is Student's. More connections than enough only wait.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from velodrome.judge.confidence import student_t
from velodrome.model.interval import Interval
from velodrome.model.search import ConnectionsFound, Ending, Sample

ENOUGH = 0.95
"""Of the most: from here on throughput is said to rise no more."""
RISES = 1.05
"""From one number to its double: less than this is no rise."""


@dataclass(frozen=True)
class ConnectionSearch:
    """What to search, and how long."""

    first: int = 1
    most: int = 4096
    """Connections."""
    blocks: int = 4
    """At least; a second time as many where the interval is still wide."""
    ratio: float = 1.25
    """Neighbouring numbers are no further apart at the end."""


@dataclass
class _Search:
    measure: Callable[[int], Sample]
    asked: ConnectionSearch
    samples: list[Sample] = field(default_factory=list)

    def run(self) -> ConnectionsFound:
        stopped = self._double()
        if stopped is not None:
            return stopped
        self._narrow()
        counts = self._around()
        for _ in range(2):
            blocks = [self._block(counts) for _ in range(self.asked.blocks)]
            if sum(block is None for block in blocks) > 1:
                return self._beyond(self._spoilt())
            found = self._judged(counts)
            if found.ending is Ending.CONVERGED:
                break
        return found

    def _ended(
        self, ending: Ending, because: str, count: Interval | None = None, rps: Interval | None = None
    ) -> ConnectionsFound:
        return ConnectionsFound(ending, count, rps, because, tuple(self.samples))

    def _spoilt(self) -> str:
        return next((one.spoilt for one in reversed(self.samples) if one.spoilt), "")

    def _try(self, count: int) -> Sample:
        sample = self.measure(count)
        self.samples.append(sample)
        return sample

    def _double(self) -> ConnectionsFound | None:
        """Double until throughput has risen no more twice; None when it has."""
        count, best, flat = self.asked.first, 0.0, 0
        while True:
            sample = self._try(count)
            if sample.spoilt:
                # The machine may have paused, and once is no limit.
                sample = self._try(count)
            if sample.spoilt:
                return self._beyond(sample.spoilt)
            flat = 0 if sample.rps > RISES * best else flat + 1
            best = max(best, sample.rps)
            if best <= 0:
                return self._ended(Ending.CANNOT, "nothing was answered right")
            if flat == 2:
                return None
            if count >= self.asked.most:
                # One number that rose no more is enough where no second can be tried.
                return (
                    None
                    if flat
                    else self._beyond("throughput still rises there, and more were not to be tried")
                )
            count = min(count * 2, self.asked.most)

    def _beyond(self, because: str) -> ConnectionsFound:
        good = [one for one in self.samples if not one.spoilt]
        if not good:
            return self._ended(Ending.CANNOT, because)
        best = max(good, key=lambda one: one.rps)
        count, rps = float(best.connections), best.rps
        return self._ended(Ending.BEYOND, because, Interval(count, count, count), Interval(rps, rps, rps))

    def _means(self) -> dict[int, float]:
        found: dict[int, list[float]] = {}
        for one in self.samples:
            found.setdefault(one.connections, []).append(one.rps)
        return {count: statistics.fmean(values) for count, values in sorted(found.items())}

    def _edge(self) -> tuple[int, int]:
        """Return the last number below 95 % of the most (0: none was), and the first with it."""
        means = self._means()
        most = max(means.values())
        first = next(count for count, rps in means.items() if rps >= ENOUGH * most)
        return max((count for count in means if count < first), default=0), first

    def _narrow(self) -> None:
        below, first = self._edge()
        while below and first - below > 1 and first > self.asked.ratio * below:
            if self._try(round(math.sqrt(below * first))).spoilt:
                return
            below, first = self._edge()

    def _around(self) -> list[int]:
        """Return the numbers to be compared: two on either side of the edge, and the one with the most."""
        means = self._means()
        below, first = self._edge()
        order = list(means)
        place = order.index(first)
        near = order[max(0, place - 2) : place + 2]
        most = max(means, key=means.__getitem__)
        return sorted({*near, *([below] if below else []), most})

    def _block(self, counts: Sequence[int]) -> list[Sample] | None:
        """Measure all once, in turns from either end; None where one was spoilt."""
        forward = len(self.samples) % 2 == 0
        found = [self._try(count) for count in (counts if forward else counts[::-1])]
        return None if any(one.spoilt for one in found) else found

    def _judged(self, counts: Sequence[int]) -> ConnectionsFound:
        blocks = self._blocks(counts)
        most = max(counts, key=lambda count: statistics.fmean(block[count] for block in blocks))
        ratios = {count: [math.log(block[count] / block[most]) for block in blocks] for count in counts}
        others = [count for count in counts if count != most]
        error = _error([ratios[count] for count in others])
        means = {count: statistics.fmean(values) for count, values in ratios.items()}
        edge = math.log(ENOUGH)
        maybe = [count for count in counts if count == most or means[count] + error >= edge]
        surely = [count for count in counts if count == most or means[count] - error >= edge]
        likely = [count for count in counts if means[count] >= edge]
        low, mid, high = min(maybe), min(likely), min(surely)
        rps = [block[mid] for block in blocks]
        half = student_t(len(rps) - 1) * statistics.stdev(rps) / math.sqrt(len(rps)) if len(rps) > 1 else 0.0
        mean = statistics.fmean(rps)
        told = Interval(low, mid, high), Interval(mean - half, mean, mean + half)
        if high <= 2 * low:
            return self._ended(Ending.CONVERGED, "", *told)
        return self._ended(Ending.SPENT, f"{len(blocks)} blocks vary too much", *told)

    def _blocks(self, counts: Sequence[int]) -> list[dict[int, float]]:
        """Return the whole blocks at the end of what was measured, without those that were spoilt."""
        size = len(counts)
        found: list[dict[int, float]] = []
        rest = self.samples
        while len(rest) >= size and {one.connections for one in rest[-size:]} == set(counts):
            if not any(one.spoilt for one in rest[-size:]):
                found.append({one.connections: max(one.rps, 1e-9) for one in rest[-size:]})
            rest = rest[:-size]
        return found


def _error(ratios: Sequence[Sequence[float]]) -> float:
    """Return half the width of the interval of a mean ratio, its variance pooled over all numbers."""
    blocks = len(ratios[0]) if ratios else 0
    if blocks < 2:
        return math.inf
    freedom = len(ratios) * (blocks - 1)
    variance = sum(statistics.variance(values) for values in ratios) / len(ratios)
    return student_t(freedom) * math.sqrt(variance / blocks)


def enough_connections(measure: Callable[[int], Sample], asked: ConnectionSearch) -> ConnectionsFound:
    """Search the number of connections at which throughput stops rising. What `measure` raises ends the search."""
    return _Search(measure, asked).run()
