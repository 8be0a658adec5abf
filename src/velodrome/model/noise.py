"""By how much two equal servers differ from block to block: known for each quantity and regime before a run shows any.

    table = SHIPPED
    table.cpu(cpus=0.2).share       # 0.3: a server that sleeps pays for every wake-up

A regime is what the quantity depends on. A *busy* server computes: its figures move with the speed of the machine, and
with its start (a fresh process lies elsewhere in memory). A server that is *asleep* for most of the time pays for
waking up. A server that *waits* for a third party answers as fast as that lets it, whatever the machine does.

`docs/method.md` («Noise») has the measurements; `benchmarks/equals.py` repeats them. The table that a run was judged
with is in the header of its results, so that judging again gives the same.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

DF = 4.0
"""Degrees of freedom that the shipped figures are worth on a machine nobody measured: as much as five blocks."""
BUSY = 0.5
"""CPUs in use, from which on a server is busy."""
LEAST_LATENCY = 0.005
"""Of any latency, by the clock and the buckets of its histogram."""


@dataclass(frozen=True)
class Spread:
    """Standard deviation, over blocks, of the log ratio of two equal servers, each started anew in every block."""

    share: float
    floor_ms: float = 0.0
    """Of a latency: what waking up differs by, however short the latency is."""
    df: float = DF
    """How well it is known, as degrees of freedom."""


SHARES: Mapping[str, Spread] = {
    "throughput busy": Spread(0.05),
    "throughput waiting": Spread(0.006),
    "throughput of the schedule": Spread(0.01),
    "cpu busy": Spread(0.05),
    "cpu asleep": Spread(0.3),
    "memory": Spread(0.02),
    "mean": Spread(0.05, 0.08),
    "p50": Spread(0.05, 0.08),
    "p75": Spread(0.05, 0.1),
    "p90": Spread(0.2, 0.15),
    "p99": Spread(0.3, 1.0),
    "p99_9": Spread(0.4, 3.0),
    "extreme": Spread(0.3),
}
"""Shipped: of two-CPU virtual machines. Latencies: the part beyond what recipe and link wait."""


@dataclass(frozen=True)
class Noise:
    """The table that a run is judged with."""

    spreads: Mapping[str, Spread] = field(default_factory=lambda: dict(SHARES))

    def of(self, name: str) -> Spread:
        """Return one line of the table; of a name that an older table lacks, the shipped line."""
        return self.spreads.get(name) or SHARES[name]

    @property
    def sentence(self) -> str:
        """Return where it is from, and what it comes to: `as shipped: throughput busy 5 %, cpu busy 5 %`."""
        learnt = any(spread.df > SHARES[name].df for name, spread in self.spreads.items() if name in SHARES)
        named = ", ".join(
            f"{name} {100 * self.of(name).share:.2g} %"
            for name in ("throughput busy", "cpu busy", "cpu asleep")
        )
        return f"{'learnt on this machine' if learnt else 'as shipped'}: {named}"

    def throughput(self, cpus: float, *, kept_up: bool = False, waits: bool = False) -> Spread:
        """Return that of answers a second: of an open loop that was kept up with it is the schedule's."""
        if kept_up:
            return self.of("throughput of the schedule")
        return self.of("throughput waiting" if waits and cpus < BUSY else "throughput busy")

    def cpu(self, cpus: float) -> Spread:
        """Return that of CPU a request, of a server that kept so many CPUs busy."""
        return self.of("cpu busy" if cpus >= BUSY else "cpu asleep")

    @property
    def memory(self) -> Spread:
        """Of memory."""
        return self.of("memory")

    @property
    def extreme(self) -> Spread:
        """Of the slowest and fastest request, a single value each, and of the deviation, which the slowest decide."""
        return self.of("extreme")

    def latency(self, part: str, value_ms: float, waits_ms: float = 0.0) -> Spread:
        """Return that of a latency (`p50`, `p99_9`, `mean`) of this size, of which recipe and link wait so much."""
        known = self.of(part)
        own = max(value_ms - waits_ms, 0.0) / value_ms
        return Spread(math.hypot(known.share * own, known.floor_ms / value_ms, LEAST_LATENCY), 0.0, known.df)

    def percentile(self, percentile: float, value_ms: float) -> Spread:
        """Return that of any percentile, of a server of which nothing is known but this latency."""
        parts = {50.0: "p50", 75.0: "p75", 90.0: "p90", 99.0: "p99", 100.0: "p99_9"}
        return self.latency(next(part for most, part in parts.items() if percentile <= most), value_ms)


SHIPPED = Noise()


MOST_DF = 60.0
"""What was seen is worth at most so many degrees of freedom: a machine changes, and contestants differ."""


def together(before: Mapping[str, Spread], now: Mapping[str, Spread]) -> dict[str, Spread]:
    """Return what was seen in all runs; of what was seen long ago less counts."""
    found = dict(before)
    for name, new in now.items():
        old = before.get(name)
        if old is None:
            found[name] = Spread(new.share, new.floor_ms, min(new.df, MOST_DF))
            continue
        df = old.df + new.df
        size = math.sqrt((old.df * old.share**2 + new.df * new.share**2) / df)
        found[name] = Spread(size, SHARES[name].floor_ms * size / SHARES[name].share, min(df, MOST_DF))
    return found


def noise_of(seen: Mapping[str, Spread]) -> Noise:
    """Return the table of a machine: what was seen there, shrunk towards the shipped table (Smyth 2004)."""
    found = {}
    for name, shipped in SHARES.items():
        if (own := seen.get(name)) is None:
            found[name] = shipped
            continue
        df = shipped.df + own.df
        size = math.sqrt((shipped.df * shipped.share**2 + own.df * own.share**2) / df)
        found[name] = Spread(size, shipped.floor_ms * size / shipped.share, df)
    return Noise(found)
