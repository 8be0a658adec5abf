"""The search for a capacity against theory: queues whose capacity is known exactly, searched as servers are.

    python benchmarks/queues.py --worlds 1000 --processes 2 --spread 0.05      simulated
    python benchmarks/queues.py --served [--only M/D]                          real servers, a search each

M/D/c and M/M/c with 1, 4 and 16 slots of 5 ms; the p99 may be so many times the service time. In each world every boot
of the server is a little faster or slower than the others (`--spread`, a standard deviation), and the search is the
real one: `judge/search/rate.py`, fed with loads that are simulated and judged by `judge/search/holding.py`. Wanted: a
bias within 2 %, and intervals that hold the truth in 93 to 97 of 100 worlds.

With `--served` each queue is an app (`queued/line.py`) on uvicorn, and `velodrome capacity` searches it once, in
five to ten minutes: the whole way, with processes, sockets and clocks. Wanted: the truth inside the interval, half of
which is at most 10 %.

The truth: M/M/c by Erlang's C (A. K. Erlang 1917), whose sojourn is a sum of two exponentials; M/D/c by the state of
the queue every D (C. D. Crommelin, «Delay probability formulae when the holding times are constant», POEEJ 25, 1932),
and waits from it by G. J. Franx, «A simple solution for the M/D/c waiting time distribution», Operations Research
Letters 29, 2001.
"""

import argparse
import heapq
import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from velodrome.judge.search.holding import PROOF_TIMES, Demands, Tried, probe, slope, warmup_s
from velodrome.judge.search.rate import Measuring, RateSearch, highest_rate
from velodrome.model.condition import Figure, Figures, LoadMetric, read
from velodrome.model.search import Ending, Probe, RateFound

SERVICE_S = 0.005
APPS = Path(__file__).parent / "queued"
LOOK_S = 3.0
TICK_S = 0.2
LATE = 0.01
"""Share of requests that may be later than the limit: a p99."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """A queue and the limit of its p99."""

    slots: int
    limit: int
    """In service times."""
    exponential: bool = False

    @property
    def name(self) -> str:
        """`M/D/4, p99 < 6 × 5 ms`."""
        kind = "M" if self.exponential else "D"
        return f"M/{kind}/{self.slots}, p99 < {self.limit} × {1000 * SERVICE_S:g} ms"

    @property
    def limit_s(self) -> float:
        """Of the p99."""
        return self.limit * SERVICE_S

    @property
    def capacity(self) -> float:
        """The rate at which one request in a hundred is later than the limit, for ever."""
        tail = _tail_mmc if self.exponential else _tail_mdc
        low, high = 0.05 * self.slots / SERVICE_S, 0.9995 * self.slots / SERVICE_S
        for _ in range(30):
            middle = (low + high) / 2
            low, high = (middle, high) if tail(middle, self) < LATE else (low, middle)
        return low


CELLS = (
    *(Cell(slots, limit) for slots in (1, 4, 16) for limit in (4, 6, 10)),
    *(Cell(slots, limit, exponential=True) for slots in (1, 4, 16) for limit in (10, 20)),
)


def _tail_mmc(rate: float, cell: Cell) -> float:
    """Return the share of requests that stay longer than the limit."""
    served, load, blocked = 1 / SERVICE_S, rate * SERVICE_S, 1.0
    for count in range(1, cell.slots + 1):
        blocked = load * blocked / (count + load * blocked)
    waits = blocked / (1 - load / cell.slots * (1 - blocked))
    drains = cell.slots * served - rate
    if abs(drains - served) < 1e-6 * served:
        drains += 1e-6 * served
    own, queued = math.exp(-served * cell.limit_s), math.exp(-drains * cell.limit_s)
    return (1 - waits) * own + waits * (served * queued - drains * own) / (served - drains)


def _tail_mdc(rate: float, cell: Cell) -> float:
    """Return the same; the limit is a whole number of service times."""
    slots, load = cell.slots, rate * SERVICE_S
    states = int(slots + 10 / (1 - load / slots)) + 100
    count = np.arange(states)
    arrive = np.exp(count * math.log(load) - load - gammaln(count + 1))
    moves = np.zeros((states, states))
    for state in range(states):
        rest = max(state - slots, 0)
        moves[state, rest:] = arrive[: states - rest]
    moves /= moves.sum(axis=1, keepdims=True)
    system = moves.T - np.eye(states)
    system[-1] = 1.0
    known = np.zeros(states)
    known[-1] = 1.0
    there = np.clip(np.linalg.solve(system, known), 0.0, None)
    waiting = np.cumsum(np.concatenate([[there[: slots + 1].sum()], there[slots + 1 :]]))
    whole = cell.limit * slots
    arrivals = np.arange(whole)
    weights = np.exp(arrivals * math.log(load) - load - gammaln(arrivals + 1))
    places = whole - arrivals - 1
    below = np.where(places < len(waiting), waiting[np.minimum(places, len(waiting) - 1)], 1.0)
    return 1.0 - float((below * weights).sum())


def sojourns(
    random: np.random.Generator, cell: Cell, rate: float, seconds: float, pace: float
) -> tuple[Floats, Floats]:
    """Return when requests arrive and how long each stays, first come first served, in a queue that begins empty.

    `pace` multiplies the speed of the server.
    """
    arrive = np.sort(random.random(max(int(random.poisson(rate * seconds)), 1)) * seconds)
    if not cell.exponential:
        # Requests leave in the order they came, so each slot serves every c-th of them: c queues of their own.
        stay, service = np.empty(len(arrive)), SERVICE_S / pace
        for slot in range(min(cell.slots, len(arrive))):
            stay[slot :: cell.slots] = _lindley(arrive[slot :: cell.slots], service)
        return arrive, stay
    services = random.exponential(SERVICE_S / pace, len(arrive))
    if cell.slots == 1:
        return arrive, _lindley(arrive, services)
    free, found = [0.0] * cell.slots, []
    for came, takes in zip(arrive.tolist(), services.tolist(), strict=True):
        done = max(free[0], came) + takes
        heapq.heapreplace(free, done)
        found.append(done - came)
    return arrive, np.array(found)


def _lindley(arrive: Floats, service: Floats | float) -> Floats:
    """Return sojourns of one server (D. V. Lindley 1952)."""
    services = np.broadcast_to(service, arrive.shape)
    walk = np.concatenate([[0.0], np.cumsum(services[:-1] - np.diff(arrive))])
    stay: Floats = walk - np.minimum.accumulate(walk) + services
    return stay


@dataclass
class Simulated:
    """A server of a cell that is loaded as a search loads one."""

    cell: Cell
    seed: int
    spread: float
    """Standard deviation of its boots' speed."""
    random: np.random.Generator = field(init=False)
    boot: int = 0
    pace: float = 1.0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.demands = Demands(must=(read(f"p99 < {1000 * self.cell.limit_s:g}ms"),))
        self.pace = math.exp(self.spread * self.random.standard_normal())

    def reboot(self) -> None:
        """Become a little faster or slower."""
        self.boot += 1
        self.pace = math.exp(self.spread * self.random.standard_normal())

    def load(self, rate: float, seconds: float) -> Probe:
        """Load it for so long, after a warm-up."""
        begin = warmup_s(seconds)
        arrive, stay = sojourns(self.random, self.cell, rate, begin + seconds, self.pace)
        counts = arrive >= begin
        late = int((stay[counts] > self.cell.limit_s).sum())
        done = np.sort(arrive + stay)
        ticks = np.arange(begin, begin + seconds, TICK_S)
        backlog = np.searchsorted(arrive, ticks) - np.searchsorted(done, ticks)
        ended = float(((done >= begin) & (done < begin + seconds)).sum()) / seconds
        tried = Tried(
            rate,
            {"ok": int(counts.sum())},
            ended,
            _figures(stay[counts]),
            seconds=seconds,
            backlog=slope(list(zip(ticks.tolist(), backlog.astype(float).tolist(), strict=True))),
            beyond=lambda _metric, _limit: float(late),
            boot=self.boot,
            scatter=3 / math.sqrt(rate * seconds),
        )
        return probe(tried, self.demands)

    def look(self, rate: float) -> Probe:
        """A short load."""
        return self.load(rate, self.demands.seconds(rate, LOOK_S))

    def near(self, rate: float) -> Probe:
        """One near the edge."""
        return self.load(rate, self.demands.seconds_near(rate, LOOK_S))

    def prove(self, rate: float) -> Probe:
        """A long one."""
        return self.load(rate, PROOF_TIMES * LOOK_S)


def _figures(stay: Floats) -> Figures:
    p99 = float(np.percentile(stay, 99)) * 1000 if len(stay) else 0.0

    def look_up(_metric: LoadMetric, _counted: bool) -> Figure:
        return Figure(p99)

    return look_up


def world(cell: Cell, spread: float, boots: int, seed: int) -> RateFound:
    """Search the capacity of one server."""
    server = Simulated(cell, seed, spread)
    measuring = Measuring(server.look, server.near, server.reboot, server.prove)
    first = 0.4 * cell.slots / SERVICE_S * server.random.uniform(0.7, 1.3)
    return highest_rate(measuring, RateSearch(first=first, boots=boots))


@dataclass(frozen=True)
class Row:
    """What came of a cell."""

    cell: Cell
    truth: float
    bias: float
    scatter: float
    covered: float
    half: float
    claimed: float
    """The claim over the estimate."""
    kept: float
    """Share of claims that are no higher than the truth."""
    loads: float
    boots: float
    worlds: int

    @property
    def line(self) -> str:
        """As a row of a table."""
        cells = (
            f"{self.cell.name:<26}",
            f"{self.truth:>7.1f}",
            f"{100 * self.bias:>+5.1f} %",
            f"{100 * self.scatter:>4.1f} %",
            f"{100 * self.covered:>5.1f} %",
            f"{100 * self.half:>4.1f} %",
            f"{self.claimed:>4.2f}",
            f"{100 * self.kept:>5.1f} %",
            f"{self.loads:>4.1f}",
            f"{self.boots:>3.1f}",
        )
        return f"| {' | '.join(cells)} |"


HEAD = (
    "| queue                      | truth/s |   bias  | scatter| covered | half   | claim| ≤ truth | loads| boots |\n"
    "|:---------------------------|--------:|--------:|-------:|--------:|-------:|-----:|--------:|-----:|------:|"
)


def row(cell: Cell, found: Sequence[RateFound]) -> Row:
    """Summarise the worlds of a cell."""
    truth = cell.capacity
    intervals = [
        search.interval
        for search in found
        if search.interval is not None and search.ending is not Ending.BEYOND
    ]
    logs = np.log([interval.mid / truth for interval in intervals])
    claims = [
        (search.claim.rate, search.interval.mid)
        for search in found
        if search.claim and search.claim.proven and search.interval
    ]
    return Row(
        cell,
        truth,
        float(np.exp(logs.mean()) - 1),
        float(logs.std()),
        float(np.mean([interval.low <= truth <= interval.high for interval in intervals]))
        * len(intervals)
        / len(found),
        float(np.mean([math.log(interval.high / interval.low) / 2 for interval in intervals])),
        float(np.mean([rate / mid for rate, mid in claims])) if claims else math.nan,
        float(np.mean([rate <= truth for rate, _ in claims])) if claims else math.nan,
        float(np.mean([len(search.probes) for search in found])),
        float(np.mean([search.boots for search in found])),
        len(found),
    )


def rows(
    cells: Sequence[Cell], worlds: int, spread: float, boots: int = 3, *, processes: int = 1, seed: int = 0
) -> list[Row]:
    """Return one row a cell."""
    if processes == 1:
        return [
            row(cell, [world(cell, spread, boots, seed + index) for index in range(worlds)]) for cell in cells
        ]
    found = []
    with ProcessPoolExecutor(processes) as pool:
        for cell in cells:
            search: Callable[[int], RateFound] = partial(world, cell, spread, boots)
            found.append(row(cell, list(pool.map(search, range(seed, seed + worlds), chunksize=5))))
            print(found[-1].line, flush=True)
    return found


def served(cell: Cell) -> str:
    """Search a real server that is this queue; return a row of a table."""
    import velodrome  # noqa: PLC0415 - the simulation does without

    variables = {
        "QUEUE_SLOTS": str(cell.slots),
        "QUEUE_SERVICE_S": str(SERVICE_S),
        "QUEUE_EXPONENTIAL": str(int(cell.exponential)),
    }
    found = velodrome.capacity(
        "line:app",
        stack="uvicorn",
        slo=f"p99 < {1000 * cell.limit_s:g}ms",
        cwd=str(APPS),
        env=[f"{name}={value}" for name, value in variables.items()],
        wait=True,
    )
    document = found.document()
    interval, claim = document["interval"], document["claim"]
    truth = cell.capacity
    cells = (
        f"{cell.name:<26}",
        f"{truth:>7.1f}",
        f"{interval['mid']:>7.1f} [{interval['low']:.1f}, {interval['high']:.1f}]",
        f"{100 * (interval['mid'] / truth - 1):>+5.1f} %",
        "yes" if interval["low"] <= truth <= interval["high"] else "no",
        f"{50 * math.log(interval['high'] / interval['low']):>4.1f} %",
        f"{claim['rate']:.0f}, {'proven' if claim['proven'] else 'not proven'}" if claim else "none",
    )
    return f"| {' | '.join(cells)} |"


SERVED_HEAD = (
    "| queue                      | truth/s | found [95 %] | off | held | half | claim |\n"
    "|:---------------------------|--------:|:-------------|----:|:-----|-----:|:------|"
)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--spread", type=float, default=0.05, help="standard deviation of the boots' speed")
    parser.add_argument("--boots", type=int, default=3, help="at least")
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--served", action="store_true", help="real servers instead of simulated ones")
    given = parser.parse_args()
    cells = [cell for cell in CELLS if given.only in cell.name]
    if given.served:
        print(SERVED_HEAD, flush=True)
        for cell in cells:
            print(served(cell), flush=True)
        return
    print(f"{given.worlds} worlds a cell, boots differ by {100 * given.spread:g} %\n\n{HEAD}", flush=True)
    found = rows(cells, given.worlds, given.spread, given.boots, processes=given.processes, seed=given.seed)
    if given.processes == 1:
        print("\n".join(cell_row.line for cell_row in found))


if __name__ == "__main__":
    main()
