"""How often printed intervals hold the truth: simulated worlds in which it is known, judged by the judge's own classes.

python benchmarks/intervals.py                  # 2,000 worlds a cell, about half an hour on one CPU
python benchmarks/intervals.py --worlds 200 --kind pair --kind diff
python benchmarks/intervals.py --table looks     # diffs that are looked at until they are settled
python benchmarks/intervals.py --table settling  # races that are run until they are settled
python benchmarks/intervals.py --table hosts     # races whose blocks ran on several hosts

In each world a server is started anew in every block. Its figure is the true one, times what this start of it is faster
or slower by (two starts differ by 5 %, standard deviation of the log ratio), times what the machine does to this block,
which all contestants of a block share in part and each has its own part of. The own part is so many times (0.5, 1, 2,
4) what the shipped table presumes. `shipped` is a machine of which only that table is known; `known` one that was
learnt from 60 blocks of equals before, whose noise is then known with as many degrees of freedom.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from velodrome.judge.histograms import FEW_BEYOND, Histogram, merge
from velodrome.judge.loaded import of_blocks
from velodrome.judge.settling import LOOKS, MOST_BLOCKS, SPENT
from velodrome.judge.standings import rank
from velodrome.judge.statistics import (
    CONFIDENCE,
    FIRST_LOOK,
    LAST_LOOK,
    LOOKED_AT,
    Comparison,
    Hosts,
    Restlessness,
    Sample,
    Series,
    Two,
    estimate,
    next_look,
)
from velodrome.model.noise import DF, SHARES
from velodrome.model.quantity import Interval, Unit

LEVELS = (0.5, 1.0, 2.0, 4.0)
BLOCKS = (1, 2, 3, 8)
BOOT = 0.05
"""Standard deviation of the log ratio of two starts of one server."""
DRIFT = 0.1
"""Of the machine from block to block, which all contestants of a block share."""
EQUALS = 60
"""Blocks of equals that a known machine was learnt from."""
Draw = np.random.Generator
Logs = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """A machine, and how well it is known."""

    level: float
    blocks: int
    known: bool = False

    def spread(self, table: str) -> float:
        """Return the true standard deviation of the log ratio of two equals, starts included."""
        # What waits, or memory, does not depend on where a process lies in memory.
        boot = 0.0 if table in {"throughput waiting", "memory"} else BOOT
        return math.hypot(self.level * SHARES[table].share, boot)

    def presumed(self, draw: Draw, table: str) -> tuple[float, float]:
        """Return what the judge knows of the noise: its size and its degrees of freedom."""
        share = SHARES[table].share
        if not self.known:
            return share, DF
        own = float(np.mean(draw.normal(0, self.spread(table), EQUALS) ** 2))
        return math.sqrt((DF * share**2 + EQUALS * own) / (DF + EQUALS)), DF + EQUALS

    def logs(self, draw: Draw, table: str, contestants: int, drift: float = DRIFT) -> Logs:
        """Return the logarithms of a figure whose true one is 1, by contestant and block."""
        own = draw.normal(0, self.spread(table) / math.sqrt(2), (contestants, self.blocks))
        found: Logs = own + draw.normal(0, drift, (1, self.blocks))
        return found

    def samples(self, draw: Draw, table: str, contestants: int, drift: float = DRIFT) -> list[Sample]:
        noise, df = self.presumed(draw, table)
        return [
            Sample(f"{i}", dict(enumerate(np.exp(row))), noise=noise, noise_df=df)
            for i, row in enumerate(self.logs(draw, table, contestants, drift))
        ]


def holds(interval: Interval, truth: float = 1.0) -> bool:
    return interval.low <= truth <= interval.high


# --- Every kind of interval that is printed: one world, and whether its interval holds the truth.


def alone(world: World, draw: Draw, table: str) -> bool:
    """A contestant's own figure in a race, beside which nothing drifts: its mean over starts."""
    return holds(Comparison(world.samples(draw, table, 1, 0.0)).alone("0"))


def pair(world: World, draw: Draw, table: str, contestants: int) -> bool:
    """All ratios to the best of a field of equals, at once: the best is chosen by these figures."""
    comparison = Comparison(world.samples(draw, table, contestants))
    best = max((sample.label for sample in comparison.samples), key=lambda label: comparison.alone(label).mid)
    pairs = [comparison.pair(sample.label, best) for sample in comparison.samples if sample.label != best]
    return all(pair is not None and holds(pair.ratio) for pair in pairs)


def claim(world: World, draw: Draw, table: str) -> bool:
    """The ratio of two figures that a claim names beforehand, the one truly 1.5 times the other."""
    noise, df = world.presumed(draw, table)
    logs = world.logs(draw, table, 2)
    first, other = (
        Series(dict(enumerate(by * np.exp(row))), noise=noise, noise_df=df)
        for by, row in zip((1.5, 1.0), logs, strict=True)
    )
    found = Comparison([first.sample("of"), other.sample("over")]).pair("of", "over")
    return found is not None and holds(found.ratio, 1.5)


def percentile(world: World, draw: Draw, table: str) -> bool:
    """A percentile of a load in blocks, as the Python API prints it."""
    values = dict(enumerate(np.exp(world.logs(draw, table, 1, 0.0)[0])))
    noise, df = world.presumed(draw, table)
    found = of_blocks(table, Unit.MILLISECONDS, values, noise=noise, noise_df=df, seconds=1.0)
    return found.interval is not None and holds(found.interval)


def order(world: World, draw: Draw, table: str) -> bool:
    """A percentile with few requests beyond it, of merged histograms; latencies are exponential, and starts differ."""
    requests = int(0.8 * FEW_BEYOND / 0.01 / world.blocks)
    starts = np.exp(draw.normal(0, BOOT / math.sqrt(2), world.blocks))
    blocks = []
    for start in starts:
        values = np.sort((start * draw.exponential(1e6, requests)).astype(np.int64))
        blocks.append(Histogram(values, np.ones(requests, np.int64)))
    found = merge(blocks).interval_ms(99, SHARES["p50"].share / math.sqrt(2 * world.blocks))
    assert found is not None
    truth = math.log(100)
    return found[0] <= truth and (found[1] is None or truth <= found[1])


FIGURES = ("throughput busy", "cpu busy", "memory", "p50", "p90", "p99", "cpu asleep", "mean")
"""Of one cell of a diff."""


def diff(world: World, draw: Draw, table: str) -> bool:
    """After over before of one figure, of a cell whose eight figures show how restless the machine is."""
    found = [_two(world, draw, figure) for figure in FIGURES]
    machine = Restlessness.of(found)
    return holds(estimate(found[FIGURES.index(table)], machine).shown)


def _two(world: World, draw: Draw, table: str) -> Two:
    noise, df = world.presumed(draw, table)
    before, after = (
        Series(dict(enumerate(np.exp(row))), noise=noise, noise_df=df) for row in world.logs(draw, table, 2)
    )
    return Two(before, after)


KINDS: dict[str, tuple[str, Callable[[World, Draw], bool]]] = {
    "alone": ("alone: answers a second", partial(alone, table="throughput busy")),
    "cost": ("alone: CPU a request, asleep", partial(alone, table="cpu asleep")),
    "waits": ("alone: answers a second of what waits", partial(alone, table="throughput waiting")),
    "pair": ("ratio, two contestants", partial(pair, table="throughput busy", contestants=2)),
    "field": ("ratios to the best, eight contestants", partial(pair, table="throughput busy", contestants=8)),
    "costs": ("ratios of CPU a request, asleep, eight", partial(pair, table="cpu asleep", contestants=8)),
    "claim": ("claim: ratio of two figures", partial(claim, table="throughput busy")),
    "claim-p99": ("claim: ratio of two p99", partial(claim, table="p99")),
    "percentile": ("load: p99 of blocks", partial(percentile, table="p99")),
    "order": ("p99 with 24 requests beyond, of order statistics", partial(order, table="p99")),
    "diff": ("diff: answers a second", partial(diff, table="throughput busy")),
    "diff-p99": ("diff: p99", partial(diff, table="p99")),
}


def coverage(kind: str, world: World, worlds: int, seed: int = 1) -> float:
    """Return in which share of worlds the interval holds the truth."""
    draw = np.random.default_rng([seed, int(world.level * 10), world.blocks])
    _, held = KINDS[kind]
    return sum(held(world, draw) for _ in range(worlds)) / worlds


def false_winners(world: World, contestants: int, worlds: int, seed: int = 2) -> float:
    """Return in which share of fields of equals one alone is first."""
    draw = np.random.default_rng([seed, int(world.level * 10), world.blocks])
    found = 0
    for _ in range(worlds):
        ranking = rank(world.samples(draw, "throughput busy", contestants))
        found += ranking is not None and len(ranking.first) == 1
    return found / worlds


# --- Looked at again and again: a diff after 4, 8, 16, 32 and 64 blocks.


def false_changes(level: float, worlds: int, spending: str = "shared", seed: int = 3) -> float:
    """Return in which share of diffs of one figure that changed nothing one of the looks says that it did.

    On a machine that is known: what a presumed noise errs by is in the other tables.
    """
    draw = np.random.default_rng([seed, int(level * 10)])
    return (
        sum(
            _ever_changed(_two(World(level, 64, known=True), draw, "throughput busy"), spending)
            for _ in range(worlds)
        )
        / worlds
    )


def _ever_changed(two: Two, spending: str) -> bool:
    blocks, look = FIRST_LOOK, 1
    while True:
        before, after = (
            Series({at: side.values[at] for at in range(blocks)}, noise=side.noise, noise_df=side.noise_df)
            for side in (two.before, two.after)
        )
        times = {"shared": LOOKED_AT, "harmonic": float(look), "none": 1.0}[spending]
        if estimate(Two(before, after), Restlessness(1.0, ())).chance() * times < 0.05:
            return True
        if blocks >= LAST_LOOK:
            return False
        blocks, look = next_look(blocks), look + 1


# --- Run until it is settled: who is clearly behind after 2, 4 or 8 blocks stops.


def settle(world: World, draw: Draw, gaps: list[float], blocks: int = 3) -> tuple[str, ...]:
    """Return who may be first in the end. The rules are those of a race, in one question.

    `gaps` are the true values over the first's, as logarithms; it takes as many starts as `blocks` of all at most.
    """
    every = _field(replace(world, blocks=MOST_BLOCKS), draw, gaps)
    going, left, run = [sample.label for sample in every], blocks * len(gaps), 0
    seen: dict[str, int] = {}
    while run < MOST_BLOCKS and left >= len(going):
        left, run = left - len(going), run + 1
        seen |= dict.fromkeys(going, run)
        if run in LOOKS:
            first = _first(every, seen, 1 - SPENT)
            if len(first) == 1:
                break
            going = [label for label in going if label in first]
    return _first(every, seen, CONFIDENCE + SPENT * len(LOOKS))


def _field(world: World, draw: Draw, gaps: list[float]) -> list[Sample]:
    equals = world.samples(draw, "throughput busy", len(gaps))
    return [
        replace(sample, values={at: value * math.exp(gap) for at, value in sample.values.items()})
        for sample, gap in zip(equals, gaps, strict=True)
    ]


def _first(every: list[Sample], seen: dict[str, int], confidence: float) -> tuple[str, ...]:
    """Return who may be first by as many blocks of each as were seen."""
    cut = [
        replace(sample, values={at: value for at, value in sample.values.items() if at < seen[sample.label]})
        for sample in every
    ]
    ranking = rank(cut, confidence)
    return ranking.first if ranking else ()


def _fixed(world: World, draw: Draw, gaps: list[float]) -> tuple[str, ...]:
    every = _field(world, draw, gaps)
    return _first(every, {sample.label: world.blocks for sample in every}, CONFIDENCE)


FIELDS = {
    "8 equals": [0.0] * 8,
    "2 equals": [0.0] * 2,
    "2 equals and 6 at 70 %": [0.0] * 2 + [math.log(0.7)] * 6,
    "one leads 7 by 10 %": [0.0] + [math.log(1 / 1.1)] * 7,
}


def settling(worlds: int, known: bool) -> Iterator[str]:
    """Yield how often a race errs, and how often one is first: run until it is settled, or three blocks of all."""
    yield "| field | noise | errs, % | one first, % | three blocks: errs, % | one first, % |"
    yield "|:--|--:|--:|--:|--:|--:|"
    for called, gaps in FIELDS.items():
        for level in LEVELS:
            world, draw = World(level, 3, known), np.random.default_rng([5, int(level * 10), len(gaps)])
            best = {str(number) for number, gap in enumerate(gaps) if gap == 0}
            cells = []
            for race in (settle, _fixed):
                ends = [race(world, draw, gaps) for _ in range(worlds)]
                cells += [_errs(ends, best), sum(len(end) == 1 for end in ends)]
            yield f"| {called} | ×{level:g} | {' | '.join(f'{100 * cell / worlds:.1f}' for cell in cells)} |"


def _errs(ends: list[tuple[str, ...]], best: set[str]) -> int:
    """Count those in which somebody of the best is not among the first."""
    return sum(not best <= set(end) for end in ends)


def rows(kinds: list[str], worlds: int, known: bool) -> Iterator[str]:
    """Yield a table as Markdown, of one line a kind and level."""
    yield f"| interval | noise | {' | '.join(f'blocks: {n}' for n in BLOCKS)} |"
    yield f"|:--|--:|{'--:|' * len(BLOCKS)}"
    for kind in kinds:
        for level in LEVELS:
            found = [coverage(kind, World(level, blocks, known), worlds) for blocks in BLOCKS]
            yield f"| {KINDS[kind][0]} | ×{level:g} | {' | '.join(f'{100 * share:.1f}' for share in found)} |"


def winners(worlds: int, known: bool) -> Iterator[str]:
    """Yield a table of false winners as Markdown."""
    yield f"| equal contestants | noise | {' | '.join(f'blocks: {n}' for n in BLOCKS)} |"
    yield f"|--:|--:|{'--:|' * len(BLOCKS)}"
    for contestants in (2, 8):
        for level in LEVELS:
            found = [false_winners(World(level, n, known), contestants, worlds) for n in BLOCKS]
            yield f"| {contestants} | ×{level:g} | {' | '.join(f'{100 * share:.1f}' for share in found)} |"


def looks(worlds: int) -> Iterator[str]:
    """Yield how often one of five looks at a diff names a change that is none."""
    yield "| noise | level shared by the looks | level over the number of the look so far | full level each |"
    yield "|--:|--:|--:|--:|"
    for level in LEVELS:
        found = [false_changes(level, worlds, spending) for spending in ("shared", "harmonic", "none")]
        yield f"| ×{level:g} | {' | '.join(f'{100 * share:.1f}' for share in found)} |"


# --- Races whose blocks ran on several hosts. A host does something to all its contestants (its level), and to each
# something of its own (by how much one is faster there); both are drawn once for all blocks of a host.


@dataclass(frozen=True)
class Several:
    """Hosts, and by how much they truly differ: standard deviations of logarithms."""

    hosts: int
    blocks: int
    """On each."""
    level: float = 0.0
    ratio: float = 0.0
    """Of the ratio of two contestants."""
    alike: bool = True
    """Whether the judge sees hosts of one kind."""

    def samples(self, draw: Draw, contestants: int, drift: float = DRIFT) -> list[Sample]:
        """Return what a field of equals does, of busy servers as noisy as presumed."""
        noise, many = SHARES["throughput busy"].share, self.hosts * self.blocks
        where = np.arange(many) % self.hosts
        logs = draw.normal(0, noise / math.sqrt(2), (contestants, many)) + draw.normal(0, drift, many)
        logs += draw.normal(0, self.level, self.hosts)[where]
        logs += draw.normal(0, self.ratio / math.sqrt(2), (contestants, self.hosts))[:, where]
        ran = Hosts({block: f"host {host}" for block, host in enumerate(where)}, self.alike)
        return [
            Sample(f"{i}", dict(enumerate(np.exp(row))), noise=noise, noise_df=DF, hosts=ran)
            for i, row in enumerate(logs)
        ]


def hosts_hold(several: Several, contestants: int, worlds: int, seed: int = 20_071) -> tuple[float, float]:
    """Return in which shares all ratios to the best hold the truth, and a level, beside which nothing drifts."""
    draw = np.random.default_rng(seed)
    ratios = levels = 0
    for _ in range(worlds):
        comparison = Comparison(several.samples(draw, contestants))
        own = {sample.label: comparison.alone(sample.label) for sample in comparison.samples}
        best = max(own, key=lambda label: own[label].mid)
        pairs = [comparison.pair(label, best) for label in own if label != best]
        ratios += all(pair is not None and holds(pair.ratio) for pair in pairs)
        levels += holds(Comparison(several.samples(draw, 1, 0.0)).alone("0"))
    return ratios / worlds, levels / worlds


SEVERAL = {
    "equal": (0.0, 0.0, True),
    "of one kind, 1 % and 5 %": (0.01, 0.05, True),
    "of one kind, 2 % and 5 %": (0.02, 0.05, True),
    "of two kinds, 5 % and 30 %": (0.05, 0.3, False),
    "of two kinds, 10 % and 30 %": (0.1, 0.3, False),
}
"""Hosts, and by how much ratios and levels truly differ over them."""


def several_rows(worlds: int) -> Iterator[str]:
    """Yield the table line by line."""
    yield (
        "| hosts | | "
        + " | ".join(f"{c} contestants, {b} blocks each" for c in (2, 6) for b in (1, 3, 6))
        + " |"
    )
    yield "|" + "--|" * 8
    for what, (ratio, level, alike) in SEVERAL.items():
        for hosts in (2, 4):
            cells = []
            for contestants in (2, 6):
                for blocks in (1, 3, 6):
                    found = hosts_hold(Several(hosts, blocks, level, ratio, alike), contestants, worlds)
                    cells.append(" · ".join(f"{100 * share:.1f}" for share in found))
            yield f"| {what} | {hosts} | " + " | ".join(cells) + " |"


TABLES = ("coverage", "winners", "looks", "settling", "hosts")


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--machine", choices=("known", "shipped"), action="append")
    parser.add_argument("--table", choices=TABLES, action="append")
    options = parser.parse_args()
    tables = options.table or TABLES
    for machine in options.machine or ("known", "shipped"):
        known = machine == "known"
        if "coverage" in tables:
            print(f"\nmachine {machine}: of {options.worlds} worlds, the interval holds the truth in (%)\n")
            for row in rows(options.kind or list(KINDS), options.worlds, known):
                print(row, flush=True)
        if "winners" in tables:
            print(f"\nmachine {machine}: of {options.worlds} races of equals, one alone is first in (%)\n")
            for row in winners(options.worlds, known):
                print(row, flush=True)
        if "settling" in tables:
            print(f"\nmachine {machine}: of {options.worlds} races that go on until they are settled\n")
            for row in settling(options.worlds, known):
                print(row, flush=True)
    if "looks" in tables:
        print(f"\nof {options.worlds} diffs of equals, looked at five times, a change is named in (%)\n")
        for row in looks(options.worlds):
            print(row, flush=True)
    if "hosts" in tables:
        print(f"\nof {options.worlds} races on several hosts, ratios · levels hold the truth in (%)\n")
        for row in several_rows(options.worlds):
            print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
