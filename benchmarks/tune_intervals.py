"""How often the intervals of `velodrome tune` cover the truth, and how far what it claims is off, by simulation.

    python benchmarks/tune_intervals.py [--worlds 2000] [--races 100]

First finalists alone: starts of a server differ by so much, each is measured as `tune` measures it, and the interval of
so many starts is set beside what the server can do in the middle of its starts. Then whole races: six kinds of
simulated app (`tests/judge/tuning/servers.py`), where the best of all candidates is chosen first, so that luck has a
part in it.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
from rounds import Table

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.judge.tuning.servers import APPS, CPUS, Servers, candidates, tune

from velodrome.judge.tuning.knowing import REPORTED, Confirmed, Costs, Spread
from velodrome.judge.tuning.racing import CONFIRMING, CONFIRMING_COST
from velodrome.model.quantity import Interval
from velodrome.model.tuning import Ask, Goal, Observation, Wanted

BETWEEN = (0.01, 0.02, 0.05, 0.1)
BOOTS = (3, 4, 5, 8)
WITHIN, WRONG = 0.02, 0.02
"""By how much one start varies from load to load, and the share of loads that tell the contrary."""
OFF = 0.08
"""How far off it is known beforehand where to look."""
TRUE = 1_000.0
SEED = 4_711


def rate(draw: np.random.Generator, between: float, boots: int) -> Interval:
    """Return the interval of the highest rate of one world."""
    known = Confirmed(TRUE * math.exp(draw.normal(0, OFF)))
    for boot in range(boots):
        edge = TRUE * math.exp(draw.normal(0, between))
        for _ in range(CONFIRMING):
            rate = known.next(boot)
            held = (rate < edge * math.exp(draw.normal(0, WITHIN))) != (draw.random() < WRONG)
            known.learn(Observation(Ask(3.0, rate=rate), rate, held, boot=boot))
    return known.interval()


def cost(draw: np.random.Generator, between: float, boots: int) -> Interval:
    """Return the interval of a cost of one world."""
    known = Costs(TRUE, Spread(0.06), alone=True)
    for boot in range(boots):
        start = draw.normal(0, between)
        for _ in range(CONFIRMING_COST):
            known.pay(TRUE * math.exp(start + draw.normal(0, WITHIN)), boot)
    return known.cost(REPORTED)


def row(name: str, found: Sequence[Interval], truths: Sequence[float]) -> tuple[str, ...]:
    """Return a line: how often covered, the middle, how far the lower end lies below it."""
    pairs = [*zip(found, truths, strict=True)]
    inside = sum(interval.low <= true <= interval.high for interval, true in pairs) / len(pairs)
    over = sum(interval.low > true for interval, true in pairs) / len(pairs)
    bias = math.exp(math.fsum(math.log(interval.mid / true) for interval, true in pairs) / len(pairs)) - 1
    low = median(interval.low / interval.mid for interval in found)
    return name, f"{inside * 100:.1f} %", f"{over * 100:.1f} %", f"{bias * 100:+.1f} %", f"{low:.2f}"


COLUMNS = ("", "covers", "claim too high", "bias", "low / estimate")


def finalists(worlds: int) -> Table:
    """Simulate finalists alone."""
    rows = []
    for what, simulate in (("rate", rate), ("cost", cost)):
        for between in BETWEEN:
            for boots in BOOTS:
                draw = np.random.default_rng(SEED)
                found = [simulate(draw, between, boots) for _ in range(worlds)]
                rows.append(
                    row(
                        f"{what}, starts differ by {between * 100:g} %, {boots} starts",
                        found,
                        [TRUE] * worlds,
                    )
                )
    return Table("Intervals of finalists", f"{worlds} worlds each; 95 % are wanted.", COLUMNS, tuple(rows))


def races(count: int) -> Table:
    """Simulate whole races."""
    every, rows = candidates(), []
    for goal in (Goal.CAPACITY, Goal.CPU):
        for between in (0.02, 0.05, 0.1):
            found, truths = [], []
            for app in APPS:
                for seed in range(count):
                    servers = Servers(app, seed, between=between)
                    at = 0.5 * max(map(servers.capacity, every)) if goal is Goal.CPU else 0.0
                    best = tune(servers, every, Wanted(goal, CPUS, at, most=3 * len(every))).best
                    if best is None or best.value is None:
                        continue
                    found.append(best.value)
                    candidate = best.candidate
                    truths.append(
                        servers.capacity(candidate) if goal is Goal.CAPACITY else servers.cost_us(candidate)
                    )
            rows.append(row(f"best for {goal.value}, starts differ by {between * 100:g} %", found, truths))
    about = f"{count} races on each of {len(APPS)} simulated apps, the best of {len(every)} candidates."
    return Table("Intervals of the recommended one", about, COLUMNS, tuple(rows))


def main() -> int:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=2_000)
    parser.add_argument("--races", type=int, default=100, help="on each app; 0: none")
    given = parser.parse_args()
    print(finalists(given.worlds).text(), flush=True)
    if given.races:
        print(races(given.races).text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
