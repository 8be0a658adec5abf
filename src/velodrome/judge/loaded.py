"""The figures of one load in several blocks, one after the other: each with how sure it is (`measured`)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from velodrome.judge.comparing import NOISE
from velodrome.judge.differing import bundling
from velodrome.judge.differing.failing import Failing
from velodrome.judge.figures.cell import spoilt
from velodrome.judge.figures.cost import BUSY, NOISE_CPU, NOISE_CPU_ASLEEP, NOISE_MEMORY
from velodrome.judge.figures.latency import noise_of
from velodrome.judge.figures.throughput import KEPT_UP, NOISE_KEPT_UP
from velodrome.judge.histograms import Histogram, decode, merge, needed
from velodrome.judge.measured import Measured, of_blocks
from velodrome.model.flag import Severity
from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import LoadFacts, Measurement
from velodrome.model.metric import Unit
from velodrome.model.quantity import grouped


@dataclass(frozen=True)
class Block:
    """One of them."""

    facts: LoadFacts
    doubt: str = ""
    """Why its figures may not count; empty: they may."""
    of_lab: bool = False
    """Whether the lab, not the server, is the reason: then its failed requests do not count either."""
    cpu_us: float | None = None
    """Of the server for each right answer; None: not known, as of a server that somebody else runs."""
    cpus: float = 0.0
    """CPUs that the server kept busy."""
    memory_bytes: float | None = None

    @staticmethod
    def of_url(facts: LoadFacts) -> "Block":
        """Return a block of a server of which nothing is known but its answers."""
        if facts.generator_saturated:
            return Block(facts, "the generator had used up its CPU: load less, or from more CPUs", True)
        return Block(facts)

    @staticmethod
    def of(one: Measurement) -> "Block":
        """Return a block of a server that was watched."""
        flags = [flag.sentence for flag in one.flags if flag.severity is Severity.INVALID]
        busy = one.server.cpu_s / one.load.duration_s
        doubt = flags[0] if flags else ""
        return Block(one.load, doubt, spoilt(one), one.cpu_us_per_request, busy, float(one.memory_bytes))


@dataclass(frozen=True)
class Blocks:
    """The same load again and again, on one server."""

    load: Load
    """Of each block."""
    every: tuple[Block, ...]

    @property
    def valid(self) -> dict[int, Block]:
        """Those whose figures count, by number."""
        return {number: one for number, one in enumerate(self.every) if not one.doubt}

    def percentile(self, percentile: float, since: str = "due") -> Measured:
        """Return the latency within which so many of 100 requests stayed, from when they were due or sent."""
        name = f"p{percentile:g}" + ("" if since == "due" else f" from {since}")
        histograms = self._histograms(since)
        least = needed(percentile)
        total = sum(one.total for one in histograms.values())
        if total < least:
            why = f"it needs {grouped(least)} requests, and there were {grouped(total)}: load longer"
            return Measured(name, Unit.MILLISECONDS, None, self._missing() or why)
        size = bundling.size_of(histograms.values(), percentile)
        values = bundling.values(histograms, size, percentile)
        whole = merge(histograms.values()).percentile_ms(percentile) or 0.0
        presumed = noise_of(percentile, whole)
        span = self.load.duration_s * size
        return of_blocks(name, Unit.MILLISECONDS, values, noise=presumed, seconds=span, whole=whole)

    @property
    def mean(self) -> Measured:
        """Mean latency from when requests were due."""
        values = {number: one.facts.due.mean or 0.0 for number, one in self.valid.items()}
        middle = sum(values.values()) / max(len(values), 1)
        presumed = noise_of(50.0, middle) if middle else 0.0
        return self._measured("mean", Unit.MILLISECONDS, values, presumed)

    @property
    def throughput(self) -> Measured:
        """Right answers a second."""
        values = {number: one.facts.throughput_rps for number, one in self.valid.items()}
        pace = self.load.pace
        kept_up = isinstance(pace, Open) and min(values.values(), default=0.0) >= KEPT_UP * pace.rate
        return self._measured("throughput", Unit.RATE, values, NOISE_KEPT_UP if kept_up else NOISE)

    @property
    def cpu(self) -> Measured:
        """Microseconds of the server's CPU for each right answer."""
        values = {number: one.cpu_us or 0.0 for number, one in self.valid.items()}
        asleep = any(one.cpus < BUSY for one in self.valid.values())
        return self._measured("cpu", Unit.MICROSECONDS, values, NOISE_CPU_ASLEEP if asleep else NOISE_CPU)

    @property
    def memory(self) -> Measured:
        """The most memory of the server, shared pages counted once where the system tells."""
        values = {number: one.memory_bytes or 0.0 for number, one in self.valid.items()}
        return self._measured("memory", Unit.BYTES, values, NOISE_MEMORY)

    def _measured(self, name: str, unit: Unit, values: Mapping[int, float], noise: float) -> Measured:
        there = {number: value for number, value in values.items() if value > 0}
        if there:
            return of_blocks(name, unit, there, noise=noise, seconds=self.load.duration_s)
        unwatched = unit in {Unit.BYTES, Unit.MICROSECONDS} and not self._missing()
        why = "of a server that is not started here only its answers are known: load the app itself"
        return Measured(name, unit, None, why if unwatched else self._missing() or "no request was answered")

    @property
    def errors(self) -> Measured:
        """The share of requests without a right answer. A closed loop ends with some in flight: those are none."""
        counted = [one.facts for one in self.every if not one.of_lab and one.facts.requests]
        counts = [(self._failed(one), one.requests) for one in counted]
        if not counts:
            return Measured("errors", Unit.SHARE, None, self._missing() or "no request was made")
        seconds = self.load.duration_s * len(self.every)

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

    def _missing(self) -> str:
        """Return why nothing counts, or nothing."""
        return "" if self.valid else next((one.doubt for one in self.every if one.doubt), "")

    def _histograms(self, since: str) -> dict[int, Histogram]:
        texts = {
            number: one.facts.hdr_due if since == "due" else one.facts.hdr_sent
            for number, one in self.valid.items()
        }
        return {number: decode(text) for number, text in texts.items() if text}
