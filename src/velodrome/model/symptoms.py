"""What the screens of `velodrome doctor` see of an app on a server, before anything is proven. Facts, no opinions.

Next to nothing is imported here: `velodrome load` ends with it, after a load that may have been of a second.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from velodrome.guest.stack import KnobValue
from velodrome.model.bottleneck import USED_UP
from velodrome.model.diagnosis import Met, Timeline
from velodrome.model.quantity import Interval, significant

QUEUED = 1.25
"""Requests in flight, over those in work at once, from which on some of them surely wait."""


@dataclass(frozen=True)
class Point:
    """One closed loop."""

    connections: int
    rps: float
    """Right answers per second."""
    cpus: float
    """CPUs that the server kept busy."""
    threads: int
    """Of all its processes, at most."""
    errors: float = 0.0
    """Share of the requests that were not answered right."""


FALLS, FAIL = 0.8, 0.02
"""Throughput over that of the plateau, up to which more connections have made it fall (closed loops vary by less), and
the share of requests that may fail: of more it is these that throughput misses."""


@dataclass(frozen=True)
class Slope:
    """How throughput rises with the requests in flight, and where it stops."""

    points: tuple[Point, ...]
    """In the order of their connections."""
    in_work: Interval
    """How many requests are in work at once on the plateau: its throughput over that of one connection."""
    knee: int
    """Connections of the fewest that reach the plateau; where it still rises, the most that were tried."""
    rises: bool
    """Whether throughput still rose at the most connections."""
    cut: bool = False
    """Whether there was no time for more connections."""
    bears: int = 0
    """Connections with which it still answers, where it answers nothing right with more; 0: with any number."""
    lasts: float | None = None
    """Throughput at the end, over what it was with as many connections at first; None: it was not measured again."""

    @property
    def plateau(self) -> Point:
        """The closed loop with the most throughput."""
        return max(self.points, key=lambda point: point.rps)

    @property
    def alone(self) -> Point:
        """The throughput of one connection."""
        return self.points[0]

    @property
    def alone_s(self) -> float:
        """How long a request that is alone takes: by all pairs of closed loops, and not by the first of these only."""
        return self.in_work.mid / self.plateau.rps

    @property
    def falls(self) -> Point | None:
        """The closed loop behind the knee with the least throughput, where that is clearly less; None: it is not."""
        behind = [point for point in self.points if point.connections > self.knee]
        least = min(behind, key=lambda point: point.rps, default=None)
        if least is None or least.rps > FALLS * self.plateau.rps or least.errors > FAIL:
            return None
        return least


@dataclass(frozen=True)
class Frame:
    """A place in a stack."""

    file: str
    line: int
    function: str
    awaits: bool = False
    """Whether it is of an `async def`."""
    own: bool = False
    """Whether it is the app's own code, not a package's."""
    end_line: int = 0
    column: int | None = None
    """In bytes, from 0; None: the interpreter does not tell (before Python 3.11)."""
    end_column: int | None = None
    text: str = ""
    """The line of source."""

    @property
    def place(self) -> str:
        """`/srv/shop/pricing.py:88`."""
        return f"{self.file}:{self.line}"

    def site(self) -> dict[str, Any]:
        """Return it as `guest/injected/places.py` reads it."""
        columns = {} if self.column is None else {"column": self.column, "end_column": self.end_column}
        return {"file": self.file, "line": self.line, "end_line": self.end_line or self.line, **columns}


@dataclass(frozen=True)
class HeldUp:
    """A stack in which the loop's thread was while the loop was late."""

    stack: tuple[Frame, ...]
    """The innermost first."""
    seconds: float
    """In all."""
    ran_s: float
    """Of that, on a CPU."""
    blocked_s: float
    """Of that, neither on a CPU nor waiting for a CPU."""
    times: int

    @property
    def named(self) -> Frame:
        """The innermost frame of the app's own code, or of all where none is."""
        return next((frame for frame in self.stack if frame.own), self.stack[0])

    @property
    def awaiting(self) -> Frame | None:
        """The innermost `async def` of the app's own code: a call in it can be awaited instead."""
        return next((frame for frame in self.stack if frame.own and frame.awaits), None)


@dataclass(frozen=True)
class Run:
    """Awaits that follow each other and do not need each other, as their source has it."""

    file: str
    line: int
    end_line: int
    awaits: int
    """How many; 1 for a loop."""
    loops: bool
    """Whether it is one await in a loop."""
    before: str
    after: str
    """The line that awaits them at once."""

    @property
    def place(self) -> str:
        """`/srv/shop/cart.py:12`."""
        return f"{self.file}:{self.line}"

    def document(self) -> dict[str, Any]:
        """Return it as `guest/injected/gathering.py` reads it."""
        return {"file": self.file, "line": self.line, "end_line": self.end_line}


@dataclass(frozen=True)
class Waits:
    """An await of the app's own code that tasks wait in."""

    place: str
    """`/srv/shop/cart.py:12`."""
    function: str
    text: str
    """The line of source."""
    seconds: float
    """Of all tasks together."""
    most: int
    """Tasks at once."""
    inner: bool = True
    """Whether nothing of the app's own is awaited inside of it."""
    run: Run | None = None
    """What could be awaited at the same time; None: nothing."""
    locked_s: float = 0.0
    """Of the seconds those in which they wait for a lock, which one has at a time."""
    holds: str = ""
    """What of a database tasks have while they wait there: `db (aiosqlite.core.Connection)`; empty: nothing is seen."""


@dataclass(frozen=True)
class Called:
    """Where something is called from that one of `guest/injected/marks.py` stands for."""

    place: str
    """`/srv/shop/cart.py:12`."""
    function: str
    text: str
    """The line of source."""
    share: float
    """Of the time in what is called."""


@dataclass(frozen=True)
class Statement:
    """What the app's own code sends to a database at one place, whatever values are in it."""

    normalized: str
    """`SELECT name FROM items WHERE id = ?`."""
    place: str
    """`/srv/shop/cart.py:12`."""
    function: str
    text: str
    """The line of source."""
    each: float
    """How often, for each request of the load."""
    seconds: float
    """For how long in all."""


@dataclass(frozen=True)
class Hop:
    """A function of the app's own that AnyIO calls in a thread, since it is no `async def`."""

    place: str
    """`/srv/shop/users.py:12`, the line of its `def`."""
    function: str
    text: str
    """The line of source."""
    each: float
    """How often, for each request of the load."""
    mean_ms: float
    """For how long the thread was in it, each time."""
    cpu_ms: float
    """Of that, for how long it computed."""
    yields: bool = False
    """Whether it is a generator."""


@dataclass(frozen=True)
class Collected:
    """Collections of the whole heap under load, in the process that spends most on them."""

    seconds: float
    """Of the load."""
    collections_s: float
    longest_s: float

    @property
    def share(self) -> float:
        """Of the time."""
        return self.collections_s / self.seconds


@dataclass(frozen=True)
class Opened:
    """Connections to one address that an app opened while it was loaded."""

    peer: str
    """Host and port; empty: there were none."""
    count: int
    each: float
    """For each request."""

    @property
    def said(self) -> str:
        """As people read it, without the end of the sentence."""
        return f"{significant(self.each, 2)} connections to {self.peer} are opened for each request"


@dataclass(frozen=True)
class Watched:
    """What a heartbeat beside the event loop saw during a load."""

    seconds: float
    loop: str
    """Module of the event loop; empty: none ran in the process."""
    late_s: float
    """For how long the loop was late, in all."""
    held_up: tuple[HeldUp, ...]
    """The longest first."""
    collections_s: float
    """In which the whole heap was gone through for garbage, in the process that spends most on it."""
    longest_collection_s: float
    shares: Mapping[str, float] = field(default_factory=dict)
    """Of the time of threads that were not idle, the share that was in each of `guest/injected/marks.py`."""
    at_once: Mapping[str, float] = field(default_factory=dict)
    """Threads that were in each of these at the same time, on average: unlike a share of all threads that were not
    idle, the same however many others wait for somebody."""
    callers: Mapping[str, tuple[Called, ...]] = field(default_factory=dict)
    """From where each of these is called, most of the time first."""
    lines: tuple[Called, ...] = ()
    """The lines of the app's own code that threads which were not idle were in, most of the time first."""
    threads: Mapping[str, int] = field(default_factory=dict)
    """Most threads at once, by the beginning of their names."""
    libraries: frozenset[str] = frozenset()
    """Packages that were imported, among those that a diagnosis is about."""
    rps: float = 0.0
    """Of the load meanwhile."""
    others_s: float = 0.0
    """CPU time of other threads of the process while the loop was late."""
    looked_s: float = 0.0
    """Of `seconds`, those of `waits` and `waiting`: of what began before the load nothing is in these."""
    waits: tuple[Waits, ...] = ()
    """Where tasks of asyncio wait, the longest first; looked at every 60 ms, at no more than 64 tasks."""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """Most tasks at once that wait in what one of `guest/injected/marks.py` stands for."""
    statements: tuple[Statement, ...] = ()
    """Sent to databases, by their normalized text and place, those that took longest first."""
    followed_s: float = 0.0
    """Of the load, for how long `statements`, `pauses` and `hops` were followed."""
    connects: Mapping[str, int] = field(default_factory=dict)
    """Connections that its processes opened in `connected_s`, by host and port."""
    ports: int = 0
    """Local ports that there are for these; 0: not known."""
    timeline: Timeline | None = None
    """What happened when; None: it is not known when the load began."""
    connected_s: float = 0.0
    """From the first of its processes that counted connections to the last, an event loop or not."""
    left_behind: frozenset[str] = frozenset()
    """Names of threads that were there before a process was forked, and are not in it."""
    limited: bool = False
    """A variable, of the environment or set by the app, limits how many threads native libraries compute in."""
    computing: Mapping[str, float] = field(default_factory=dict)
    """CPUs that computed in those of `shares` that are what an app builds, on average. Where several threads compute,
    their stacks are mostly of where they wait for the interpreter's lock."""
    lasted_s: float = 0.0
    """From when to when it was watched: `seconds` are those of all processes together."""
    pauses: tuple[Statement, ...] = ()
    """Sleeps of requests, by the line of the app's own code that makes them, those that took longest first."""
    ended: tuple[Called, ...] = ()
    """Where the app's own code ended a process that serves, most often first; the shares are of `ends`."""
    ends: int = 0
    """How often it did."""
    hops: tuple[Hop, ...] = ()
    """Functions of the app's own that AnyIO calls in threads, those first in which threads are for longest."""

    @property
    def called(self) -> Mapping[str, Called]:
        """From where each of `shares` is called most."""
        return {mark: callers[0] for mark, callers in self.callers.items() if callers}

    @property
    def most_opened(self) -> Opened | None:
        """The address that most connections were opened to; None: nobody counted them."""
        if not self.connected_s or not self.rps:
            return None
        peer, count = max(self.connects.items(), key=itemgetter(1), default=("", 0))
        return Opened(peer, count, count / (self.rps * self.connected_s))

    @property
    def collected(self) -> Collected | None:
        """Collections of the whole heap; None: nobody looked."""
        if not self.seconds:
            return None
        return Collected(self.lasted_s, self.collections_s, self.longest_collection_s)

    @property
    def longest_queue(self) -> Waits | None:
        """The innermost await in which tasks spent the most time of those with several tasks at once; None: none."""
        return next(iter(self.queues), None)

    @property
    def queues(self) -> tuple[Waits, ...]:
        """The innermost awaits with several tasks at once, the longest first."""
        return tuple(wait for wait in self.waits if wait.inner and wait.most > 1)

    @property
    def blocked_s(self) -> float:
        """Seconds in which the loop's thread was blocked while the loop was late."""
        return sum(stall.blocked_s for stall in self.held_up)

    @property
    def ran_s(self) -> float:
        """Seconds in which it computed while the loop was late."""
        return sum(stall.ran_s for stall in self.held_up)


@dataclass(frozen=True)
class Reused:
    """Latency of requests one after the other, on a connection each and on a reused one: medians, milliseconds."""

    first_ms: float
    later_ms: float


@dataclass(frozen=True)
class Step:
    """What an app does while its third parties take so many times as long as they do."""

    times: float
    waited_ms: float
    """For which a third party keeps one call, in the middle."""
    alone_ms: float
    """The p50 of a request that is alone."""
    calls: float
    """Of third parties, a request."""
    rps: float
    """Of a closed loop."""
    cpus: float
    """That the server kept busy in it."""


@dataclass(frozen=True)
class Stepped:
    """What it changes that third parties take longer."""

    connections: int
    """Of the closed loop of each step."""
    before: Step
    after: Step
    by_clients: bool = False
    """Whether the clients in the app wait longer for what they are answered: its third parties are not simulated."""

    @property
    def in_sequence(self) -> float:
        """How many calls follow each other in one request: by how much it takes longer, over that of a call."""
        return (self.after.alone_ms - self.before.alone_ms) / (self.after.waited_ms - self.before.waited_ms)

    @property
    def slots(self) -> float | None:
        """How many requests can be in their calls at once; None: throughput does not depend on third parties.

        Each takes longer by what a call does, and over all slots together that is what throughput shows.
        """
        longer = 1000 / self.after.rps - 1000 / self.before.rps
        added = self.after.alone_ms - self.before.alone_ms
        if longer <= 0 or added <= 0 or self.after.rps > FOLLOWS * self.before.rps:
            return None
        return added / longer


FOLLOWS = 0.85
"""Throughput over that of before, above which it does not follow third parties."""


@dataclass(frozen=True)
class Worn:
    """What requests meet, one or few at a time, on a server that answered many before."""

    requests: int
    """Answered before."""
    met: Met
    """Those that wait for longer than one took at first, or fail, while nobody computes."""


@dataclass(frozen=True)
class Counted:
    """What counters and outcomes of loads show that were measured for another purpose; None: not known."""

    overflows: int | None = None
    """Connections that a full listen queue turned away, in all closed loops: the queue of an open one may grow."""
    throttled: float | None = None
    """Share of the time in which control groups kept the server from the CPU, in the load with the most."""
    busiest: float | None = None
    """Work of the busiest worker, of an equal share, in the closed loop in which it is most equal."""
    fails_from: int | None = None
    """Requests in flight from which on one in a hundred fails, where none does with half as many or fewer."""
    machine_cpus: int = 0
    """CPUs of the whole machine; 0: not known."""
    hangs_from: int | None = None
    """Requests in flight from which on next to nothing is answered or computed, which is not so with half as many."""
    never_in: float = 0.0
    """Share of the connections that never got an answer, in the closed loop with the most of them."""
    unread: float = 0.0
    """Connections closed with part of a request unread, for each request, in the load with the most."""
    burning: int = 0
    """Processes that had no connection and used CPU, in the load with the most."""
    replaced: int = 0
    """Processes of the server that others took the place of, in the load with the most of them."""
    lost: float = 0.0
    """Share of the requests that were refused or reset in that load."""
    left_open: float = 0.0
    """Descriptors that each request leaves open, in the closed loop in which these are fewest."""
    left_bytes: float = 0.0
    """Memory that each request leaves in use, in the load in which that is least; 0 as well where there is one load."""
    packages: frozenset[str] = frozenset()
    """Installed for the app, by normalized name; empty: not known."""


@dataclass(frozen=True)
class Setting:
    """How the server is set, as far as its stack says."""

    stack: str = ""
    knobs: Mapping[str, KnobValue] = field(default_factory=dict)
    """All of them, defaults and cures included."""
    workers: int = 1
    slots: int | None = None
    """Requests that it can serve at once; None: connections or CPU are the limit."""
    keeps_alive: bool = True
    keeps_idle_s: float | None = None
    """How long it keeps an idle connection; None: that is not known."""
    plain: bool = True
    """Whether a probe can speak to it: over HTTP/1.1."""
    has_body: bool = False
    """Whether the requests have a body."""
    interface: str = ""
    """How it calls Python."""
    awaits: bool = False
    """Whether handlers are called on an event loop, which tells them when their client has left."""
    reloads: bool = False
    """Whether SIGHUP to its first process replaces all of its workers."""
    replaces: bool = False
    """Whether another worker takes the place of one that ends."""


@dataclass(frozen=True)
class InUse:
    """Requests that were answered so far, and what was in use, after each load."""

    memory: tuple[tuple[int, float], ...] = ()
    """Bytes."""
    descriptors: tuple[tuple[int, float], ...] = ()
    """That were open."""
    connections: tuple[tuple[int, float], ...] = ()
    """That were opened so far."""


@dataclass(frozen=True)
class Symptoms:
    """What all screens saw of one state of the app. A screen that could not be made is None."""

    slope: Slope | None
    watched: Watched | None
    reused: Reused | None
    workers: int
    server_cpus: int
    watched_alone: Watched | None = None
    """As `watched`, of one connection: no two requests hold up the loop one right after the other."""
    failed: tuple[str, ...] = ()
    """Why a screen could not be made, a sentence each."""
    setting: Setting = field(default_factory=Setting)
    met: Mapping[str, Met] = field(default_factory=dict)
    """What the look of a fault met, by the fault's id; looks that could not be made are missing."""
    in_use: InUse = InUse()
    """Of the slope."""
    stepped: Stepped | None = None
    """With third parties that take longer; None: it calls none that is known, or it was not tried."""
    counted: Counted | None = None
    """Of loads that were measured for another purpose; the doctor's own screens have none."""
    collected: Collected | None = None
    """Without a heartbeat, whose own work makes the collector run more often; None: with it, there was little."""
    compressed: bool = False
    """Whether the body of an answer is (`Content-Encoding`)."""
    worn: Worn | None = None
    """Once the closed loops of the slope had ended; None: nobody looked, or the server is gone."""
    crowded: Met | None = None
    """With more requests in flight than the slope came to; None: it came to as many, or nobody looked."""

    @property
    def in_work_each(self) -> float:
        """How many requests one worker has in work at once on the plateau; 0: not known."""
        return self.slope.in_work.mid / max(self.workers, 1) if self.slope else 0.0

    @property
    def computes(self) -> bool:
        """Whether the CPUs are used up that its interpreters, one lock each, can use, where throughput stops.

        On the plateau; or on none of it does a request wait for others: whenever some have to, it is for the CPUs. Not
        where longer calls of third parties show that it is for these, while the CPUs are not used up.
        """
        if self.slope is None:
            return False
        full = USED_UP * min(self.workers, self.server_cpus)
        stepped = self.stepped
        slots = stepped.slots if stepped is not None else None
        if (
            stepped is not None
            and slots is not None
            and QUEUED * slots < stepped.connections
            and stepped.before.cpus < full
        ):
            return False
        beyond = [point for point in self.slope.points if point.connections > QUEUED * self.slope.in_work.mid]
        return self.slope.plateau.cpus >= full or (
            len(beyond) > 0 and all(point.cpus >= full for point in beyond)
        )


# --- Requests that all take as long, but for the fastest: what a load shows of the first request of a connection.

STEADY = 0.15
"""Of the median, what the mean may differ by where all requests take about as long."""
FEW = 20
"""Requests that a median is of, at least."""
SECOND = 3
"""Requests for each connection, at least, for the median to be of reused connections."""


def all_but_the_fastest(loads: Sequence[tuple[float | None, float | None, float | None]]) -> Reused | None:
    """Return the fastest of all loads and their lowest median, given fastest, median and mean of each, milliseconds.

    None: in one of them requests differ among themselves too, so that the fastest may be another kind of request.
    """
    fastest, medians = [], []
    for least, median, mean in loads:
        if least is None or median is None or mean is None or abs(mean - median) > STEADY * median:
            return None
        fastest.append(least)
        medians.append(median)
    return Reused(min(fastest), min(medians)) if medians else None


def symptoms_of_load(document: Mapping[str, Any]) -> Symptoms:
    """Return what one load of a URL shows (`velodrome/load/1`): nothing is known of what serves it."""
    load, server, sent = document["load"], document.get("server"), document["latency_ms"]["sent"]
    busy = server is not None and server["busiest_cpu_s"] >= USED_UP * server["span_s"]
    kept = document["connections"]["opened"] or 0
    reused = None
    # A request of its own for each connection shows nothing of the second.
    if load["protocol"] == "http" and not busy and document["ok"] >= max(FEW, SECOND * kept):
        reused = all_but_the_fastest([(document["fastest_ms"], sent["p50"], sent["mean"])])
    return Symptoms(None, None, reused, 1, 1)
