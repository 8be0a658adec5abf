"""SLOPE: closed loops of 1, 2, 4 … connections, until throughput rises no more; then the two ends again, in turns.

points, died = climb(server)
pairs = ends(server, points)
"""

from velodrome.model.errors import NoServerError
from velodrome.model.measurement import Measurement
from velodrome.model.symptoms import Point
from velodrome.run.instruments.standing import Standing, figures

MOST = 512
RISES = 1.05
"""Over what fewer connections did: throughput that rises."""
FLAT = 2
"""Numbers of connections, one after the other, that add nothing, after which it stops."""
SHORT_S, LONG_S, ANSWERS = 0.6, 4.0, 12
"""A closed loop lasts as long as so many answers take one after the other, within these."""
FEWEST = 3
"""So many at least, of an app that takes longer than that allows."""
PAIRS = 3


def alone(server: Standing) -> Point:
    """Return the closed loop of one connection, as long as some requests take. Raises NoServerError."""
    measured = server.closed(1, SHORT_S)
    # One that is answered after the load is known by the first request alone, which was sent in the warm-up.
    took_ms = measured.load.sent.mean or measured.load.fastest_ms
    if measured.load.answers >= FEWEST or took_ms is None:
        return _of(1, measured)
    return point(server, 1, FEWEST * took_ms / 1000)


def climb(server: Standing, most: int = MOST, first: Point | None = None) -> tuple[tuple[Point, ...], str]:
    """Return the closed loops, and why there are no more where the server did not bear the last; empty: it bore all.

    `first` is that of one connection, where it is known. Raises NoServerError where it bears none.
    """
    points = [first or point(server, 1, SHORT_S)]
    seconds = _seconds(points[0])
    best, flat, count = points[0], 0, 1
    while count < most and flat < FLAT:
        count *= 2
        try:
            points.append(point(server, count, seconds))
        except NoServerError as error:
            return tuple(points), f"{count} connections at once: {error.reason}"
        flat = flat + 1 if points[-1].rps < RISES * best.rps else 0
        best = max(best, points[-1], key=lambda one: one.rps)
    return tuple(points), ""


def ends(server: Standing, points: tuple[Point, ...]) -> tuple[tuple[float, float], ...]:
    """Return throughputs of one connection and of the plateau, one after the other, in pairs. Raises NoServerError."""
    best, seconds = max(points, key=lambda one: one.rps), _seconds(points[0])
    return tuple(
        (point(server, 1, seconds).rps, point(server, best.connections, seconds).rps) for _ in range(PAIRS)
    )


def _seconds(alone: Point) -> float:
    each_s = 1 / max(alone.rps, 0.05)
    return max(min(max(SHORT_S, ANSWERS * each_s), LONG_S), FEWEST * each_s)


def point(server: Standing, connections: int, seconds: float) -> Point:
    """Measure one closed loop. Raises NoServerError."""
    return _of(connections, server.closed(connections, seconds))


def _of(connections: int, measured: Measurement) -> Point:
    found = figures(measured)
    return Point(
        connections,
        found.rps,
        measured.server.cpu_s / measured.load.duration_s,
        measured.server.threads_peak,
        found.errors,
    )
