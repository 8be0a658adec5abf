"""The figures of one load in several blocks, one after the other: each with its interval and how sure a bound on it is.

`Measured` is a figure of the Python API: it compares with a bound, or says how many more blocks it takes to tell.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from velodrome.judge import histograms as bundling
from velodrome.judge.field import spoilt
from velodrome.judge.histograms import Histogram, decode, merge, values_needed
from velodrome.judge.statistics import NOISE_DF, Comparison, Failing, Sample, fewest_blocks, student_t
from velodrome.model.condition import Bound, within
from velodrome.model.errors import InsufficientDataError
from velodrome.model.load import AS_SCHEDULED, Load, Open
from velodrome.model.measurement import LoadFacts, Measurement, Severity
from velodrome.model.noise import SHIPPED, Noise, Spread
from velodrome.model.quantity import Interval, Unit, in_unit, thousands

LONGEST = 60
"""Times as long as it was: nobody waits for more."""


@dataclass(frozen=True, eq=False)
class Measured:
    """One figure of a load."""

    name: str
    unit: Unit
    interval: Interval | None
    """None: it was not measured."""
    missing: str = ""
    """Why not, and what to do."""
    more: Callable[[float], str] = lambda _: ""
    """Given a limit within the interval: what would tell on which side of it the figure is."""

    @property
    def value(self) -> float:
        """The estimate, in its unit: milliseconds, microseconds, a share of one, bytes. NaN where there is none."""
        return self.interval.mid if self.interval else math.nan

    def __float__(self) -> float:
        return self.value

    def __lt__(self, limit: Bound | float) -> bool:
        return self._surely_below(limit)

    def __le__(self, limit: Bound | float) -> bool:
        return self._surely_below(limit)

    def __gt__(self, limit: Bound | float) -> bool:
        return not self._surely_below(limit)

    def __ge__(self, limit: Bound | float) -> bool:
        return not self._surely_below(limit)

    def __repr__(self) -> str:
        return f"{self.name} {in_unit(self.interval, self.unit)}"

    def _surely_below(self, limit: Bound | float) -> bool:
        """Return on which side of a limit the figure surely is. Raises InsufficientDataError where that is not sure."""
        bound = within(limit, self.unit, self.name)
        if self.interval is None:
            raise InsufficientDataError(f"{self.name} was not measured: {self.missing}")
        if self.interval.high < bound:
            return True
        if self.interval.low > bound:
            return False
        shown = in_unit(self.interval, self.unit)
        reaches = f"{self.name} is {shown}, which reaches across {in_unit(bound, self.unit)}"
        raise InsufficientDataError(reaches, self.more(bound))


def of_blocks(
    name: str,
    unit: Unit,
    values: Mapping[int, float],
    *,
    noise: float,
    noise_df: float = NOISE_DF,
    seconds: float,
    whole: float | None = None,
) -> Measured:
    """Return a figure of its value in each block, all above 0.

    `noise` is presumed of the ratio of two equal servers in a block of `seconds`; `whole` is the figure of all blocks
    together, where that is no mean.
    """
    interval = Comparison([Sample(name, values, noise=noise, noise_df=noise_df)]).alone(name)
    if whole:
        shift = whole / interval.mid
        interval = Interval(interval.low * shift, whole, interval.high * shift)
    half = math.log(interval.high / interval.low) / 2
    blocks = len(values)

    def more(bound: float) -> str:
        distance = abs(math.log(bound / interval.mid)) if bound > 0 else math.inf
        needed = _blocks_needed(half, blocks, distance)
        if needed is None:
            return "it is so near to the limit that only an unreasonably long load would decide"
        length = needed * seconds
        return f"{math.ceil(length - blocks * seconds)} more seconds would decide: load for {math.ceil(length)} s"

    return Measured(name, unit, interval, more=more)


def _blocks_needed(half: float, blocks: int, distance: float) -> int | None:
    """Return how many blocks would narrow half the interval, in logs, to less than a distance; None: too many."""
    scale = half * math.sqrt(blocks) / _t(blocks)
    return fewest_blocks(
        lambda many: scale * _t(many) / math.sqrt(many), distance, blocks + 1, LONGEST * blocks
    )


def _t(blocks: int) -> float:
    return student_t(NOISE_DF + blocks - 1)


# --- The figures of one load in several blocks, one after the other: each with how sure it is (`measured`).


@dataclass(frozen=True)
class Block:
    """The load in one block."""

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
    def of(measurement: Measurement) -> "Block":
        """Return a block of a server that was watched."""
        flags = [flag.sentence for flag in measurement.flags if flag.severity is Severity.INVALID]
        busy = measurement.server.cpu_s / measurement.load.duration_s
        doubt = flags[0] if flags else ""
        return Block(
            measurement.load,
            doubt,
            spoilt(measurement),
            measurement.cpu_us_per_request,
            busy,
            float(measurement.memory_bytes),
        )


@dataclass(frozen=True)
class Blocks:
    """The same load again and again, on one server."""

    load: Load
    """Of each block."""
    every: tuple[Block, ...]
    noise: Noise = SHIPPED
    """What its figures are presumed to vary by."""

    @property
    def valid(self) -> dict[int, Block]:
        """Those whose figures count, by number."""
        return {number: block for number, block in enumerate(self.every) if not block.doubt}

    def percentile(self, percentile: float, since: str = "due") -> Measured:
        """Return the latency within which so many of 100 requests stayed, from when they were due or sent."""
        name = f"p{percentile:g}" + ("" if since == "due" else f" from {since}")
        histograms = self._histograms(since)
        least = values_needed(percentile)
        total = sum(histogram.total for histogram in histograms.values())
        if total < least:
            why = f"it needs {thousands(least)} requests, and there were {thousands(total)}: load longer"
            return Measured(name, Unit.MILLISECONDS, None, self._missing() or why)
        size = bundling.bundle_size(histograms.values(), percentile)
        values = bundling.bundle_percentiles(histograms, size, percentile)
        whole = merge(histograms.values()).percentile_ms(percentile) or 0.0
        presumed = self.noise.percentile(percentile, whole)
        span = self.load.duration_s * size
        return of_blocks(
            name,
            Unit.MILLISECONDS,
            values,
            noise=presumed.share,
            noise_df=presumed.df,
            seconds=span,
            whole=whole,
        )

    @property
    def mean(self) -> Measured:
        """Mean latency from when requests were due."""
        values = {number: block.facts.due.mean or 0.0 for number, block in self.valid.items()}
        middle = sum(values.values()) / max(len(values), 1)
        presumed = self.noise.latency("mean", middle) if middle else self.noise.of("mean")
        return self._measure("mean", Unit.MILLISECONDS, values, presumed)

    @property
    def throughput(self) -> Measured:
        """Right answers a second."""
        values = {number: block.facts.throughput_rps for number, block in self.valid.items()}
        pace = self.load.pace
        scatter = pace.scatter(self.load.duration_s) if isinstance(pace, Open) else 0.0
        kept_up = isinstance(pace, Open) and all(
            pace.kept_up(block.facts.throughput_rps, block.facts.duration_s, AS_SCHEDULED)
            for block in self.valid.values()
        )
        cpus = max((block.cpus for block in self.valid.values()), default=0.0)
        # Each block has other arrivals, so their number is part of what two blocks differ by.
        known = self.noise.throughput(cpus, kept_up=kept_up)
        scattered = Spread(math.hypot(known.share, math.sqrt(2) * scatter / 3), df=known.df)
        return self._measure("throughput", Unit.RATE, values, scattered)

    @property
    def cpu(self) -> Measured:
        """Microseconds of the server's CPU for each right answer."""
        values = {number: block.cpu_us or 0.0 for number, block in self.valid.items()}
        cpus = min((block.cpus for block in self.valid.values()), default=0.0)
        return self._measure("cpu", Unit.MICROSECONDS, values, self.noise.cpu(cpus))

    @property
    def memory(self) -> Measured:
        """The most memory of the server, shared pages counted once where the system tells."""
        values = {number: block.memory_bytes or 0.0 for number, block in self.valid.items()}
        return self._measure("memory", Unit.BYTES, values, self.noise.memory)

    def _measure(self, name: str, unit: Unit, values: Mapping[int, float], noise: Spread) -> Measured:
        there = {number: value for number, value in values.items() if value > 0}
        if there:
            return of_blocks(
                name,
                unit,
                there,
                noise=noise.share,
                noise_df=noise.df,
                seconds=self.load.duration_s,
            )
        unwatched = unit in {Unit.BYTES, Unit.MICROSECONDS} and not self._missing()
        why = "of a server that is not started here only its answers are known: load the app itself"
        return Measured(name, unit, None, why if unwatched else self._missing() or "no request was answered")

    @property
    def errors(self) -> Measured:
        """The share of requests without a right answer. A closed loop ends with some in flight: those are none."""
        counted = [block.facts for block in self.every if not block.of_lab and block.facts.requests]
        counts = [
            (load_facts.count_failed(self.load.pace.kind), load_facts.requests) for load_facts in counted
        ]
        if not counts:
            return Measured("errors", Unit.SHARE, None, self._missing() or "no request was made")
        seconds = self.load.duration_s * len(self.every)

        def more(bound: float) -> str:
            requests = sum(count for _, count in counts)
            wanted = math.ceil(4 / bound) if bound > 0 else 0
            if wanted > requests:
                longer = math.ceil(seconds * wanted / requests)
                return (
                    f"it takes {thousands(wanted)} requests to measure so small a share: load for {longer} s"
                )
            return "load longer"

        return Measured("errors", Unit.SHARE, Failing(counts, counts).alone, more=more)

    def _missing(self) -> str:
        """Return why nothing counts, or nothing."""
        return "" if self.valid else next((block.doubt for block in self.every if block.doubt), "")

    def _histograms(self, since: str) -> dict[int, Histogram]:
        texts = {
            number: block.facts.hdr_due if since == "due" else block.facts.hdr_sent
            for number, block in self.valid.items()
        }
        return {number: decode(text) for number, text in texts.items() if text}
