"""Simulated servers of six kinds of app, whose best setting is known: what a search among settings sees of them.

What a candidate can do is the least of its bounds, rounded where two meet, with something of its own that no arithmetic
foresees; what is measured of it has noise, and one answer in fifty is wrong.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.judge.tuning.racing import CONFIRM_S, Field, Measure, confirming, drive, race, whole
from velodrome.model.tuning import Ask, Candidate, Observation, Tuned, Wanted
from velodrome.plan.matrix import grid

CPUS = 2
WSGI = ("gunicorn-gevent", "gunicorn-gthread", "gunicorn-sync", "granian-wsgi", "waitress")
COST_US = {
    "gunicorn-gevent": 260.0,
    "gunicorn-gthread": 330.0,
    "gunicorn-sync": 300.0,
    "granian-wsgi": 150.0,
    "waitress": 380.0,
}
"""CPU that each stack takes for a request by itself."""
BYTES_US = {
    "gunicorn-gevent": 1.6,
    "gunicorn-gthread": 1.0,
    "gunicorn-sync": 1.0,
    "granian-wsgi": 2.5,
    "waitress": 1.8,
}
"""CPU for a kilobyte of answer."""
SWITCHING = {"gunicorn-sync": 0.0, "waitress": 0.1}
"""Of that, what each doubling of threads adds."""


@dataclass(frozen=True)
class App:
    """What each request does."""

    name: str
    cpu_us: float = 100.0
    wait_ms: float = 0.0
    pool: int = 0
    """Connections to the database that each process has; 0: as many as it wants."""
    kilobytes: float = 0.0
    leak_bytes: float = 0.0
    process_mb: float = 40.0


APPS = (
    App("computes", cpu_us=8_000),
    App("waits", cpu_us=300, wait_ms=120),
    App("pool", cpu_us=500, wait_ms=12, pool=8),
    App("large", cpu_us=60, kilobytes=220),
    App("mixed", cpu_us=2_500, wait_ms=40, kilobytes=20),
    App("leaks", cpu_us=900, wait_ms=15, leak_bytes=4_000, process_mb=70),
)


def stacks() -> list[Stack]:
    """The stacks that serve WSGI."""
    every = catalog.stacks()
    return [every[name] for name in WSGI]


def candidates() -> tuple[Candidate, ...]:
    """The whole grid."""
    return grid(stacks(), CPUS)


@dataclass
class Servers:
    """All candidates of one app on one machine, measured with noise."""

    app: App
    seed: int
    slo_ms: float = 200.0
    memory_limit: int | None = None
    wrong: float = 0.02
    """Share of loads that break although the rate would hold, or hold although it would not."""
    between: float = 0.04
    """Standard deviation of starts of one server, as a part."""
    loads: list[tuple[str, Ask]] = field(default_factory=list)
    boots: int = 0

    def __post_init__(self) -> None:
        self._runs, self._start = "", 1.0
        self.random = np.random.default_rng(self.seed)
        self.own = np.random.default_rng(self.seed + 1_000_000)
        self._traits: dict[str, float] = {}

    def trait(self, candidate: Candidate) -> float:
        """What no arithmetic foresees of a candidate: a few per cent."""
        if candidate.label not in self._traits:
            self._traits[candidate.label] = math.exp(self.own.normal(0, 0.03))
        return self._traits[candidate.label]

    def cost_us(self, candidate: Candidate) -> float:
        """CPU of a request."""
        stack = candidate.contestant.stack
        threads = (candidate.slots or 1) / candidate.processes
        switching = 1 + SWITCHING.get(stack, 0.03) * math.log2(max(threads, 1))
        own = COST_US[stack] * switching + BYTES_US[stack] * self.app.kilobytes
        crowded = 1 + 0.02 * max(candidate.processes / CPUS - 1, 0)
        return (self.app.cpu_us + own) * crowded / self.trait(candidate)

    def most(self, candidate: Candidate) -> float:
        """All it can do."""
        cost_s = self.cost_us(candidate) / 1e6
        stay_s = cost_s + self.app.wait_ms / 1000
        bounds = [min(candidate.processes, CPUS) / cost_s]
        if candidate.slots is not None:
            bounds.append(candidate.slots / stay_s)
        if self.app.pool and self.app.wait_ms:
            bounds.append(candidate.processes * self.app.pool / (self.app.wait_ms / 1000))
        return float(sum(bound**-8.0 for bound in bounds) ** (-1 / 8))

    def capacity(self, candidate: Candidate) -> float:
        """The highest rate at which its latency stays within the SLO."""
        alone_ms = self.cost_us(candidate) / 1000 + self.app.wait_ms
        if alone_ms > self.slo_ms:
            return 0.0
        room = 1 - 2.5 * alone_ms / self.slo_ms / math.sqrt(candidate.slots or 64)
        return self.most(candidate) * min(0.97, max(room, 0.3))

    def memory(self, candidate: Candidate) -> int:
        """Bytes, of forked processes that share a part."""
        threads = (candidate.slots or 0) / candidate.processes
        each_mb = self.app.process_mb * (1 + 0.7 * (candidate.processes - 1)) + 0.06 * threads
        return round(each_mb * 1e6)

    def __call__(self, candidate: Candidate, load: Ask) -> Observation:
        self.loads.append((candidate.label, load))
        if load.fresh or candidate.label != self._runs:
            self._runs, self.boots = candidate.label, self.boots + 1
            self._start = math.exp(self.random.normal(0, self.between))
        return replace(self._load(candidate, load), boot=self.boots)

    def _load(self, candidate: Candidate, load: Ask) -> Observation:
        noise = 0.012 + 0.03 / math.sqrt(load.seconds)
        cost = self.cost_us(candidate) / self._start * math.exp(self.random.normal(0, 0.03))
        memory = round(self.memory(candidate) * math.exp(self.random.normal(0, 0.02)))
        most = self.most(candidate) * self._start * math.exp(self.random.normal(0, noise))
        alone_ms = self.cost_us(candidate) / 1000 + self.app.wait_ms
        grew = self.app.leak_bytes * math.exp(self.random.normal(0, 0.2)) if self.app.leak_bytes else None
        if not load.rate:
            got = (most**-6.0 + (load.connections / alone_ms * 1000) ** -6.0) ** (-1 / 6)
            return Observation(load, got, None, "", False, load.connections / got * 1000, cost, memory, grew)
        edge = self.capacity(candidate) * self._start * math.exp(self.random.normal(0, noise))
        held = load.rate < edge
        if self.random.random() < self.wrong:
            held = not held
        overdone = not held and load.rate > most
        got = min(load.rate, most)
        why = "" if held else "p99 was 612 ms, and the limit is 200 ms"
        return Observation(load, got, held, why, overdone, alone_ms, cost, memory, grew)


def takes_s(load: Ask) -> float:
    """Return how long a load takes with what is around it."""
    return load.seconds + (4.0 if load.fresh else 1.0)


def regret(servers: Servers, every: Sequence[Candidate], chosen: Candidate) -> float:
    """What the chosen one does less than the best there is, as part of that."""
    best = max(servers.capacity(candidate) for candidate in every)
    return 1 - servers.capacity(chosen) / best


def tune(
    measure: Measure,
    grid: Sequence[Candidate],
    wanted: Wanted,
    goes_on: Callable[[], bool] = lambda: True,
    refine: Callable[[Candidate], Sequence[Candidate]] = lambda _: (),
    *,
    looks_on: Callable[[], bool] = lambda: True,
    confirms: Callable[[], float] = lambda: CONFIRM_S,
) -> Tuned:
    """Search the best of a grid from its beginning, confirm it, and return what came of it."""
    field = Field(grid, wanted)
    race(measure, field, goes_on, refine, looks_on=looks_on)
    drive(confirming(whole(field), confirms), measure)
    return field.result(not goes_on())
