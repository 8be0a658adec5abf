"""Symptoms and arms made up, for what judges them."""

from collections.abc import Sequence
from dataclasses import replace

from velodrome.diagnoses.fault import catalogue
from velodrome.model.diagnosis import AS_IT_IS, Arms, Counts, Figures, Met, Probe, Treatment
from velodrome.model.quantity import Interval
from velodrome.model.symptoms import (
    Frame,
    HeldUp,
    InUse,
    Point,
    Reused,
    Run,
    Setting,
    Slope,
    Step,
    Stepped,
    Symptoms,
    Waits,
    Watched,
)

HANDLER = Frame("/srv/shop/views.py", 12, "price", True, True, 12, 4, 19, "    fetch(order, 2)")
FETCH = Frame("/srv/shop/client.py", 7, "fetch", False, True, 7, 11, 40, "    return requests.get(url)")
LOOP = Frame("/usr/lib/python3.12/asyncio/events.py", 88, "_run")
WAITING = HeldUp((FETCH, HANDLER, LOOP), seconds=0.6, ran_s=0.01, blocked_s=0.58, times=30)
COMPUTING = HeldUp((FETCH, HANDLER, LOOP), seconds=0.6, ran_s=0.57, blocked_s=0.01, times=30)

QUIET = Watched(
    3.0,
    "asyncio.unix_events",
    0.0,
    (),
    0.0,
    0.0,
    rps=100.0,
    looked_s=3.0,
    followed_s=3.0,
    ports=28_000,
    connected_s=3.0,
    lasted_s=3.0,
)
CART = Run(
    "/srv/shop/cart.py",
    12,
    13,
    2,
    False,
    "a = await f(); b = await g()",
    "a, b = await asyncio.gather(f(), g())",
)
AWAITS = tuple(Waits(f"/srv/shop/cart.py:{line}", "cart", "await …", 1.4, 1, run=CART) for line in (12, 13))


def rising(k: float, cpus: float = 0.2, most: int = 256) -> Slope:
    """Return the slope of an app with so many requests in work, at 20 a second each."""
    counts = [count for count in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512) if count <= most]
    points = tuple(Point(count, 20 * min(count, k), cpus * min(count, k) / k, 4) for count in counts)
    knee = next(point.connections for point in points if point.rps >= 19 * min(k, most))
    return Slope(points, Interval(0.97 * k, k, 1.03 * k), knee, rises=k >= most, lasts=1.0)


def slower(alone_ms: float, rps: float, connections: int = 64, cpus: float = 0.2) -> Stepped:
    """Return what third parties change that take 100 ms in place of 50 ms, of an app that takes 60 ms and did 100/s."""
    before = Step(1.0, 50.0, 60.0, 1.0, 100.0, cpus)
    return Stepped(connections, before, Step(2.0, 100.0, alone_ms, 1.0, rps, cpus))


CALM = Met(0, 16, {"ok": 16})
SETTING = Setting(
    "uvicorn",
    {"workers": 2, "backlog": 2048, "keepalive": 75},
    2,
    4,
    keeps_idle_s=75.0,
    has_body=True,
    interface="asgi",
    awaits=True,
    reloads=True,
    replaces=True,
)
"""Of a server on which every look can be tried."""
IN_THREADS = replace(SETTING, interface="wsgi", awaits=False)
"""The same of a server that calls its app in threads."""
SEEN = Symptoms(
    rising(40),
    QUIET,
    Reused(1.0, 1.1),
    1,
    1,
    QUIET,
    setting=SETTING,
    met={name: CALM for name, fault in catalogue().items() if fault.look is not None},
    in_use=InUse(
        memory=tuple((1000 * number, 5e7) for number in range(8)),
        descriptors=tuple((1000 * number, 40.0) for number in range(8)),
    ),
    stepped=slower(60.0, 100.0),
)


def meeting(name: str, hits: int, of: int = 16, setting: Setting = SETTING, **figures: float) -> Symptoms:
    """Return what is seen where the look of one fault counted so many, and measured these figures."""
    return replace(SEEN, met={**SEEN.met, name: Met(hits, of, figures=figures)}, setting=setting)


def with_threads(pool: str, count: int, *libraries: str, k: float = 40) -> Symptoms:
    """Return what is seen of an app that has so many threads of a pool."""
    watched = replace(QUIET, threads={pool: count}, libraries=frozenset(libraries))
    return replace(SEEN, slope=rising(k), watched=watched)


def failing(share: float, alone: float = 0.0) -> Symptoms:
    """Return what is seen of an app of which that share of the requests in flight together fails."""
    slope = rising(40)
    first, *rest = slope.points
    points = (replace(first, errors=alone), *(replace(point, errors=share) for point in rest))
    return replace(SEEN, slope=replace(slope, points=points))


def held(*places: HeldUp) -> Symptoms:
    """Return what is seen of an app whose loop was held up there."""
    return replace(
        SEEN, watched=replace(QUIET, held_up=places, late_s=sum(place.seconds for place in places))
    )


def figures(rps: float, p99_ms: float = 20.0, errors: float = 0.0) -> Figures:
    """Return figures of a load with so much throughput."""
    return Figures(rps, 8000 / rps, 7000 / rps, p99_ms, 500.0, errors)


def arms(before: Sequence[float], after: Sequence[float], **of_after: float) -> Arms:
    """Return arms with these throughputs, block by block."""
    blocks = tuple(
        (figures(untreated), figures(treated, **of_after))
        for untreated, treated in zip(before, after, strict=True)
    )
    return Arms("closed-8", AS_IT_IS, Treatment("cured", {"nodelay": True}), blocks)


PROBE = Probe("idle", "16 requests beside 8 idle connections", "late", {"count": 8}, unprovoked={"count": 0})


def counts(before: Sequence[int], after: Sequence[int], of: int = 16, probe: Probe = PROBE) -> Counts:
    """Return the arms of a probe with so many hits, block by block."""
    blocks = tuple(
        (Met(untreated, of), Met(treated, of)) for untreated, treated in zip(before, after, strict=True)
    )
    return Counts(probe, AS_IT_IS, Treatment("cured", knobs={"keepalive": 75}), blocks)
