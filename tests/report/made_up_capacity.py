"""Results of a search for the capacity, made up."""

from tests.judge import made

from velodrome.judge.search.connections import scalability
from velodrome.model.quantity import Interval
from velodrome.model.search import (
    Bottom,
    Bound,
    ConnectionsFound,
    Ending,
    Knee,
    Probe,
    RateCapacity,
    RateFound,
    Sample,
)

BEST = made.measured(made.trial("one"), 404.0, cpu_us=4_700, mean_ms=12.0)


BOTTOM = Bottom(Bound.CPU, "its CPU is in use to 97 %")


TITLE = "gunicorn · gthread ×2 · hello"


def rate(ending: Ending, interval: Interval | None, because: str = "") -> RateCapacity:
    found = RateFound(ending, interval, because, (Probe(50.0, False, "p99 was 300 ms"),) * 3)
    conditions = ("p99 < 200ms", "errors < 0.1%")
    return RateCapacity(conditions, found, BEST if interval else None, BOTTOM if interval else None, 26, 96.0)


def knee(coherency: float) -> Knee:
    samples = tuple(
        Sample(count, 100 * count / (1 + 0.05 * (count - 1) + coherency * count * (count - 1)))
        for count in (1, 2, 4, 8, 16, 32, 64, 128)
    )
    found = ConnectionsFound(Ending.CONVERGED, Interval(28, 32, 40), Interval(900, 950, 1_000), "", samples)
    return Knee(found, scalability(samples), BEST, BOTTOM, 30, 70.0)
