"""The figures of one load in several blocks, one after the other: each with how sure it is (`measured`)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from velodrome.judge.comparing import NOISE
from velodrome.judge.differing import bundling
from velodrome.judge.differing.failing import Failing
from velodrome.judge.figures.latency import noise_of
from velodrome.judge.figures.throughput import KEPT_UP, NOISE_KEPT_UP
from velodrome.judge.histograms import Histogram, decode, merge
from velodrome.judge.measured import Measured, of_blocks
from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import LoadFacts
from velodrome.model.metric import Unit
from velodrome.model.quantity import grouped


@dataclass(frozen=True)
class Blocks:
    """The same load again and again, on one server."""

    load: Load
    """Of each block."""
    facts: tuple[LoadFacts, ...]

    @property
    def spoilt(self) -> str:
        """Why no figure may be believed, or nothing: the generator, not the server, was the limit."""
        if any(one.generator_saturated for one in self.facts):
            return "the generator had used up its CPU: load less, or from more CPUs"
        return ""

    def percentile(self, percentile: float, since: str = "due") -> Measured:
        """Return the latency within which so many of 100 requests stayed, from when they were due or sent."""
        name = f"p{percentile:g}" + ("" if since == "due" else f" from {since}")
        histograms = self._histograms(since)
        least = bundling.needed(percentile)
        total = sum(one.total for one in histograms)
        if self._missing(total) or total < least:
            why = f"it needs {grouped(least)} requests, and there were {grouped(total)}: load longer"
            return Measured(name, Unit.MILLISECONDS, None, self._missing(total) or why)
        size = bundling.size_of(histograms, percentile)
        values = bundling.values(dict(enumerate(histograms)), size, percentile)
        whole = merge(histograms).percentile_ms(percentile) or 0.0
        presumed = noise_of(percentile, whole)
        span = self.load.duration_s * size
        return of_blocks(name, Unit.MILLISECONDS, values, noise=presumed, seconds=span, whole=whole)

    @property
    def mean(self) -> Measured:
        """Mean latency from when requests were due."""
        values = {number: one.due.mean for number, one in enumerate(self.facts) if one.due.mean}
        if not values or self.spoilt:
            return Measured("mean", Unit.MILLISECONDS, None, self._missing(len(values)))
        presumed = noise_of(50.0, sum(values.values()) / len(values))
        return of_blocks("mean", Unit.MILLISECONDS, values, noise=presumed, seconds=self.load.duration_s)

    @property
    def throughput(self) -> Measured:
        """Right answers a second."""
        values = {n: one.throughput_rps for n, one in enumerate(self.facts) if one.throughput_rps > 0}
        if not values or self.spoilt:
            return Measured("throughput", Unit.RATE, None, self._missing(len(values)))
        pace = self.load.pace
        kept_up = isinstance(pace, Open) and min(values.values()) >= KEPT_UP * pace.rate
        presumed = NOISE_KEPT_UP if kept_up else NOISE
        return of_blocks("throughput", Unit.RATE, values, noise=presumed, seconds=self.load.duration_s)

    @property
    def errors(self) -> Measured:
        """The share of requests without a right answer. A closed loop ends with some in flight: those are none."""
        counts = [(self._failed(one), one.requests) for one in self.facts if one.requests]
        if not counts:
            return Measured("errors", Unit.SHARE, None, "no request was made")
        seconds = self.load.duration_s * len(self.facts)

        def more(bound: float) -> str:
            asked = sum(count for _, count in counts)
            wanted = math.ceil(4 / bound) if bound > 0 else 0
            if wanted > asked:
                longer = math.ceil(seconds * wanted / asked)
                return f"it takes {grouped(wanted)} requests to tell so small a share: load for {longer} s"
            return "load longer"

        return Measured("errors", Unit.SHARE, Failing(counts, counts).alone, more=more)

    def _failed(self, one: LoadFacts) -> int:
        unfinished = one.outcomes.get("unfinished", 0) if isinstance(self.load.pace, Closed) else 0
        return max(one.requests - one.ok - unfinished, 0)

    def _missing(self, count: int) -> str:
        return self.spoilt or ("" if count else "no request was answered")

    def _histograms(self, since: str) -> Sequence[Histogram]:
        texts = (one.hdr_due if since == "due" else one.hdr_sent for one in self.facts)
        return [decode(text) for text in texts if text]
