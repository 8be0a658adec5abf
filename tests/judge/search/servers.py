"""Simulated servers of known capacity: what a search sees when it tries a rate, or a number of connections."""

import heapq
import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from velodrome.model.search import Probe, Sample


def sojourns_mm1(
    random: np.random.Generator, rate: float, capacity: float, seconds: float
) -> NDArray[np.float64]:
    """Times in an M/M/1 queue that begins empty: Lindley's recursion, W' = max(0, W + S − A), by running minima."""
    count = max(1, int(rate * seconds))
    service = random.exponential(1 / capacity, count)
    gaps = random.exponential(1 / rate, count)
    walk = np.concatenate([[0.0], np.cumsum(service[:-1] - gaps[1:])])
    waits: NDArray[np.float64] = walk - np.minimum.accumulate(walk)
    return waits + service


def sojourns_mdc(
    random: np.random.Generator, rate: float, servers: int, service_s: float, seconds: float
) -> NDArray[np.float64]:
    """Times in an M/D/c queue that begins empty, first come first served."""
    free = [0.0] * servers
    found, now = [], 0.0
    for gap in random.exponential(1 / rate, max(1, int(rate * seconds))):
        now += float(gap)
        begins = max(now, heapq.heappop(free))
        heapq.heappush(free, begins + service_s)
        found.append(begins + service_s - now)
    return np.array(found)


@dataclass
class Queue:
    """M/M/1 whose 99th percentile is to stay below a limit, tried for some seconds each time."""

    capacity: float
    limit_s: float
    seconds: float = 5.0
    seed: int = 1
    random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    @property
    def edge(self) -> float:
        """In equilibrium the time in the system is exponential with capacity − rate, so p99 = ln 100 ÷ that."""
        return self.capacity - math.log(100) / self.limit_s

    def holds(self, rate: float) -> bool:
        times = sojourns_mm1(self.random, rate, self.capacity, self.seconds)
        return bool(np.percentile(times, 99) < self.limit_s)

    def __call__(self, rate: float) -> Probe:
        return Probe(rate, self.holds(rate), "p99 was over the limit")


@dataclass
class Cliff:
    """Holds up to a rate that varies a little from trial to trial; some answers are wrong whatever the rate."""

    edge: float
    noise: float = 0.0
    lapses: float = 0.0
    seed: int = 1
    ceiling: float = math.inf
    """From here on the generator is the limit."""
    tried: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def __call__(self, rate: float) -> Probe:
        self.tried.append(rate)
        if rate >= self.ceiling:
            return Probe(rate, None, spoilt="the generator's CPU was the limit")
        held = rate < self.edge * math.exp(self.random.normal(0, self.noise))
        if self.random.random() < self.lapses:
            held = not held
        return Probe(rate, bool(held), "too slow")


@dataclass
class ClosedLoop:
    """Throughput of a closed loop: min(c ÷ round, capacity), rounded off near the bend as a queue does, with noise."""

    capacity: float
    round_s: float
    noise: float = 0.02
    seed: int = 1
    ceiling: float = math.inf
    """From this throughput on the generator is the limit."""

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)

    def mean(self, count: int) -> float:
        """Mean value analysis of one exponential queue and a pause (Reiser and Lavenberg, JACM 27, 1980)."""
        queue, rate = 0.0, 0.0
        for customers in range(1, count + 1):
            stay = (1 + queue) / self.capacity
            rate = customers / (self.round_s + stay)
            queue = rate * stay
        return rate

    def enough(self, share: float = 0.95) -> int:
        """The first number with so much of the most there can be."""
        count = 1
        while self.mean(count) < share * self.capacity:
            count += 1
        return count

    def __call__(self, count: int) -> Sample:
        rps = self.mean(count) * math.exp(self.random.normal(0, self.noise))
        return Sample(
            count, min(rps, self.ceiling), "the generator's CPU was the limit" if rps >= self.ceiling else ""
        )
