"""Results of a search for the capacity, made up."""

from dataclasses import replace

from tests.judge import made

from velodrome.judge.search.connections import scalability
from velodrome.model.quantity import Interval
from velodrome.model.search import (
    Bottom,
    Bound,
    ConnectionsFound,
    Ending,
    Knee,
    LoadLatency,
    Overload,
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


def whole() -> RateCapacity:
    """With all that is shown beside the answer."""
    load = (
        LoadLatency(0.2, 82.4, 99.0, 22.0, 18.0, 31.0, 700, 3),
        LoadLatency(0.5, 206.0, 99.0, 31.0, None, None, 3_400, 3),
        LoadLatency(0.8, 330.0, 99.0, None, None, None, 90, 1),
        LoadLatency(0.95, 391.0, 99.0, None, None, None, 0, 0, "The host took 9 % of the CPUs."),
    )
    overload = (
        Overload(1.2, 494.0, 6.0, 405.0, 0.0, 206.0, 60.0, 3.0, 15.0),
        Overload(1.5, 618.0, 6.0, 391.0, 0.021, 206.0, 60.0, None, 15.0),
    )
    found = rate(Ending.CONVERGED, Interval(404, 412, 420))
    return replace(
        found,
        load=load,
        overload=overload,
        cold_start_s=Interval(0.58, 0.62, 0.71),
        cold_starts=6,
        left_out=("overload at 200 %: too little was left of its budget of 5 min",),
        folder="runs/my run",
    )


def knee(coherency: float) -> Knee:
    samples = tuple(
        Sample(count, 100 * count / (1 + 0.05 * (count - 1) + coherency * count * (count - 1)))
        for count in (1, 2, 4, 8, 16, 32, 64, 128)
    )
    found = ConnectionsFound(Ending.CONVERGED, Interval(28, 32, 40), Interval(900, 950, 1_000), "", samples)
    return Knee(found, scalability(samples), BEST, BOTTOM, 30, 70.0)
