"""Screens: loads on a server that show what it does before any fault is looked for.

    climbed = climb(server)                                 # SLOPE: closed loops of 1, 2, 8 … connections, until
    pairs = ends(server, climbed)                           # throughput rises no more; then the two ends, in turns
    fresh_and_reused(server, climbed.points[0])             # CONN: Reused(first_ms=0.6, later_ms=43.1)
    found = step(trial, lab, AS_IT_IS, connections=64)      # UP: the simulated third parties take longer
    found.in_sequence     3.0: a request makes three calls, one after the other
    found.slots           15.2: throughput follows 1 / the time of a call, as if 15 could be in it at once
    list(list_lacking())                                         # what this system does not show: said before all of it

Each step of UP is a fresh server with fresh third parties. What requests take longer is set against what a call takes
longer, so that everything else that a request does falls out.
"""

import asyncio
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from velodrome.model import diagnosis
from velodrome.model.diagnosis import Met, Treatment, slower_third_parties
from velodrome.model.errors import NoServerError
from velodrome.model.measurement import Measurement
from velodrome.model.symptoms import Point, Reused, Step, Stepped
from velodrome.model.trial import Trial
from velodrome.run.instruments import processes
from velodrome.run.instruments.clients import Client, Where, request_once, where
from velodrome.run.instruments.situations import beside_loops, meet
from velodrome.run.instruments.standing import TIMEOUT_S, Standing, figures, standing
from velodrome.run.lab import Lab
from velodrome.run.link import enter
from velodrome.run.measuring import kernel

# --- What this system does not show. No ptrace and no root is needed: the heartbeat runs in the server's own process.


def list_lacking(proc: Path = Path("/proc"), platform: str = sys.platform) -> Iterator[str]:
    """Yield a sentence for each thing that falls away or weakens a diagnosis, with its cure."""
    if platform != "linux":
        yield (
            f"{platform} does not say whether a late event loop waits or computes, so blocking-call and gil-convoy "
            "cannot be proven: examine the app on Linux"
        )
        return
    if not (proc / "self" / "schedstat").exists():
        yield (
            "this kernel does not say whether a late event loop waits or computes (no /proc/self/schedstat), so "
            "blocking-call and gil-convoy cannot be proven: examine the app on a kernel with CONFIG_SCHED_INFO"
        )
    if not os.access(proc / "1" / "stat", os.R_OK):
        yield (
            "processes of other users are hidden here (/proc is mounted with hidepid), so their load is not seen and "
            "may make arms noisy: let nothing else run, or examine as a user of the group that /proc is mounted with"
        )
    if kernel.Throttling(os.getpid(), proc).seconds() is None:
        yield (
            "no control group says here for how long it kept the server from the CPU, so the timeline has no "
            "throttling, and throttled cannot be proven: mount cgroups with the cpu controller to see it"
        )
    if not kernel.tells_open_files():
        yield (
            "this kernel does not say whether processes share an open file (kcmp), so shared-epoll cannot be proven: "
            "examine the app where kcmp is allowed (in a container, by its seccomp profile)"
        )


# --- SLOPE.

MOST = 512
RISES = 1.05
"""Over what fewer connections did: throughput that rises."""
SCALES = 0.9
"""Of what as many times the connections would do: throughput that is proportional to them."""
FLAT = 2
"""Numbers of connections, one after the other, that add nothing, after which it stops."""
FIRST_S = 0.1
"""Of the look at one request, after which an app may be refused: a few answers, or one."""
SHORT_S, LONG_S, ANSWERS = 0.6, 4.0, 12
"""A closed loop lasts as long as so many answers take one after the other, within these."""
LONGEST_WAIT_S = TIMEOUT_S / 2
"""Where throughput rises no more, connections are not added beyond those that wait so long: requests would time out."""
CLIMBED = 8
"""So many while throughput still doubles from one to the next: what it comes to is measured again (`ends`)."""
FEWEST = 3
"""So many at least, of an app that takes longer than that allows."""
PAIRS, SLOW_PAIRS = 3, 2
"""Of the two ends; fewer where a load takes longer than `LONG_LOAD_S`."""
LONG_LOAD_S, SLOWEST_S = 2.0, 8.0
"""What takes longer than the second is not measured again: its slope has the ends once, and a request alone as well."""


def first(server: Standing) -> float:
    """Return about how long a request takes that is alone, seconds: the fastest of a few. Raises NoServerError."""
    measured = server.run_closed_loop(1, FIRST_S)
    took_ms = measured.load.fastest_ms
    return took_ms / 1000 if took_ms is not None else 1 / _of(1, measured).rps


def alone(server: Standing) -> Point:
    """Return the closed loop of one connection, as long as some requests take. Raises NoServerError."""
    measured = server.run_closed_loop(1, SHORT_S)
    # One that is answered after the load is known by the first request alone, which was sent in the warm-up.
    took_ms = measured.load.sent.mean or measured.load.fastest_ms
    if measured.load.answers >= FEWEST or took_ms is None:
        return _of(1, measured)
    seconds = FEWEST * took_ms / 1000
    # A quick request that few answers came to was sent to workers that had ended, and were about to start again.
    return point(server, 1, seconds if seconds >= SHORT_S else LONG_S)


@dataclass(frozen=True)
class Climbed:
    """A slope, before its ends are measured again."""

    points: tuple[Point, ...]
    died: str
    """Why there are no more where the server did not bear the last; empty: it bore all."""
    cut: bool = False
    """Whether there was no time for more."""


def climb(
    server: Standing,
    most: int = MOST,
    first: Point | None = None,
    also: int = 0,
    until: float = math.inf,
) -> Climbed:
    """Return the closed loops; none begins that would last beyond `until`, on the clock of `time.monotonic`.

    While throughput is proportional to the connections every second number of them is left out. `first` is the loop of
    one connection, where it is known, `also` a number of connections that is not left out. Raises NoServerError where
    it bears none.
    """
    points = [first or point(server, 1, SHORT_S)]
    seconds = _loop_s(points[0], CLIMBED)
    best, flat, times = points[0], 0, 2
    while points[-1].connections < most and flat < FLAT:
        if time.monotonic() + seconds > until:
            return Climbed(tuple(points), "", cut=True)
        last = points[-1]
        count = min(times * last.connections, most)
        count = also if last.connections < also < count else count
        if flat and count / best.rps > LONGEST_WAIT_S:
            break
        try:
            new = [point(server, count, seconds)]
            scales = new[0].rps >= SCALES * count / last.connections * last.rps
            if not scales and count > 2 * last.connections:
                count = 2 * last.connections
                new.insert(0, point(server, count, seconds))
        except NoServerError as error:
            return Climbed(tuple(points), f"{count} connections at once: {error.reason}")
        for found in new:
            flat = flat + 1 if found.rps < RISES * best.rps else 0
            best = max(best, found, key=attrgetter("rps"))
        points += new
        times = 4 if scales else 2
    return Climbed(tuple(points), "")


def ends(server: Standing, climbed: Climbed) -> tuple[tuple[float, float], ...]:
    """Return throughputs of one connection and of the plateau, one after the other, in pairs. Raises NoServerError."""
    points = climbed.points
    best, seconds = max(points, key=attrgetter("rps")), _loop_s(points[0])
    if climbed.cut or seconds > SLOWEST_S:
        return ((points[0].rps, best.rps),)
    return tuple(
        (point(server, 1, seconds).rps, point(server, best.connections, seconds).rps)
        for _ in range(SLOW_PAIRS if seconds > LONG_LOAD_S else PAIRS)
    )


CROWD = 64
"""More in flight than the slope needs of an app that computes, and than its threads take or a usual pool has."""


def crowd(server: Standing, climbed: Climbed) -> Met | None:
    """Return what more requests in flight meet than the slope ended with; None: as many, or they would wait too long.

    None as well where they cannot be sent, or the server dies of them.
    """
    last = climbed.points[-1]
    if last.connections >= CROWD or CROWD / last.rps > LONGEST_WAIT_S:
        return None
    with suppress(NoServerError):
        return meet(server, diagnosis.crowd(CROWD))
    return None


def _loop_s(alone: Point, answers: int = ANSWERS) -> float:
    each_s = 1 / max(alone.rps, 0.05)
    return max(min(max(SHORT_S, answers * each_s), LONG_S), FEWEST * each_s)


def point(server: Standing, connections: int, seconds: float) -> Point:
    """Measure one closed loop. Raises NoServerError."""
    return _of(connections, server.run_closed_loop(connections, seconds))


def _of(connections: int, measured: Measurement) -> Point:
    found = figures(measured)
    return Point(
        connections,
        found.rps,
        measured.server.cpu_s / measured.load.duration_s,
        measured.server.threads_peak,
        found.errors,
    )


# --- CONN.

REUSED_S = 0.8
"""Of each; longer where so many requests as `FEWEST` take longer."""


def fresh_and_reused(server: Standing, alone: Point) -> Reused:
    """Return both latencies; `alone` is the loop of one connection. Raises NoServerError."""
    seconds = max(REUSED_S, FEWEST / alone.rps)
    first = figures(server.run_closed_loop(1, seconds, keepalive=False))
    if seconds > SLOWEST_S:
        return Reused(first.p50_ms, 1000 / alone.rps)
    return Reused(first.p50_ms, figures(server.run_closed_loop(1, seconds)).p50_ms)


def is_compressed(server: Standing) -> bool:
    """Return whether an answer says that its body is compressed; where none comes, it is not."""
    at = where(server.booted.target)
    if at is None:
        return False
    with enter(server.booted.site.client):
        answer = beside_loops(lambda: asyncio.run(request_once(at)))
    return answer.headers.get("content-encoding", "identity").lower() != "identity"


# --- UP.

TIMES = 2.0
LEAST_MS = 20.0
"""By which a call takes longer, at least: shorter steps are lost among the rest of a request."""
MOST_TIMES = 40.0
ASKED = 5
"""Calls of each third party by which it is known how long one takes."""
ALONE, WAVES = 4, 3
"""Requests of the load of one connection, and of each connection of the other, at least."""
STEP_S, STEP_MOST_S = 1.0, 8.0


NOTING = Treatment("calls of third parties noted", {"calls-longer": 0})
"""Where none are simulated, those that clients in the app call are known by it."""


def called_ms(server: Standing, since: float) -> float:
    """Return how long calls of third parties take, by what clients of a server under `NOTING` saw; 0: there were none.

    The median of those that were answered `since` then, by the clock of `time.monotonic`.
    """
    took = list[float]()
    for line in server.read_lines("called", processes.helpers(server)):
        with suppress(KeyError, TypeError, ValueError):  # a foreign process may write anything
            if float(line["at"]) >= since and (seconds := float(line["seconds"])) > 0:
                took.append(1000 * seconds)
    return median(took) if took else 0.0


def step(
    trial: Trial,
    lab: Lab,
    treatment: Treatment,
    connections: int,
    *,
    each_s: float = 0.0,
    called_ms: float = 0.0,
) -> Stepped | None:
    """Measure an app whose third parties take as long as they do, and longer; None: there are none, or without time.

    A request that is alone takes about `each_s` as it is; third parties that are not simulated take `called_ms`. Raises
    NoServerError, AppAnswersWrongError.
    """
    simulated = trial.app is not None and bool(trial.app.third_parties)
    if not simulated and not called_ms:
        return None
    with standing(trial, lab, treatment) as server:
        before = _step(server, 1.0, connections, each_s, called_ms)
    if not before.waited_ms:
        return None
    times = min(max(TIMES, 1 + LEAST_MS / before.waited_ms), MOST_TIMES)
    slower = slower_third_parties(times, 0.0 if simulated else before.waited_ms)
    with standing(trial, lab, treatment.plus(slower)) as server:
        longer_ms = (times - 1) * before.waited_ms
        each_s = (before.alone_ms + longer_ms) / 1000
        after = _step(server, times, connections, each_s, times * called_ms)
        if slower.give.keys() - server.took():
            return None
    if after.waited_ms <= before.waited_ms:
        return None
    return Stepped(connections, before, after, by_clients=not simulated)


def _step(server: Standing, times: float, connections: int, each_s: float, called_ms: float) -> Step:
    """Measure a step; a request that is alone takes `each_s` or longer. `called_ms` as in `step`."""
    server.warm()
    waited_ms = _waited_ms(server) or called_ms
    seconds = min(max(STEP_S / 2, (ALONE + 1) * each_s), STEP_MOST_S)
    alone = figures(server.run_closed_loop(1, seconds))
    if alone.rps * seconds < ALONE:
        alone = figures(server.run_closed_loop(1, min(ALONE * alone.mean_ms / 1000, STEP_MOST_S)))
    seconds = min(max(STEP_S, WAVES * alone.mean_ms / 1000), STEP_MOST_S)
    measured = server.run_closed_loop(connections, seconds)
    full = figures(measured)
    calls = measured.upstream.requests / measured.load.answers if measured.upstream else 0.0
    cpus = measured.server.cpu_s / measured.load.duration_s
    return Step(times, waited_ms, alone.p50_ms, calls, full.rps, cpus)


def _waited_ms(server: Standing) -> float:
    """Return for how long third parties keep a call: the mean of their medians."""

    async def took_ms(url: str) -> float:
        parts = urlsplit(url)
        at = Where(parts.hostname or "", parts.port or 80, parts.path or "/")

        async def once() -> float:
            async with Client(at) as client:
                await client.request()  # the connection is no part of it
                return 1000 * (await client.request()).seconds

        return median(await asyncio.gather(*(once() for _ in range(ASKED))))

    async def all_of_them() -> list[float]:
        return [await took_ms(upstream.url) for upstream in server.booted.upstreams]

    def latencies() -> list[float]:
        # They are on the server's side of a link.
        with enter(server.booted.site.server):
            return asyncio.run(all_of_them())

    each = beside_loops(latencies)
    return sum(each) / len(each) if each else 0.0
