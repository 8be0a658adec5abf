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
from velodrome.report import searches

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


def test_the_highest_rate_is_told_with_cost_and_bound() -> None:
    told = "\n".join(searches.lines(rate(Ending.CONVERGED, Interval(404, 412, 420)), TITLE))
    assert (
        "The highest rate with p99 < 200ms and errors < 0.1%: 412/s [404, 420], 95 %, after 3 trials." in told
    )
    assert "4 700 µs a request" in told
    assert "There its CPU is in use to 97 %." in told
    assert "26 loads in 2 min." in told


def test_what_never_holds_says_why() -> None:
    said = searches.sentence(rate(Ending.NEVER, None, "p99 was 300 ms, and the limit is 200 ms"))
    assert said == (
        "There is no rate with p99 < 200ms and errors < 0.1%, because even at 50.0/s p99 was 300 ms, and the limit is "
        "200 ms."
    )


def test_the_knee_is_told_with_the_law_and_its_peak() -> None:
    told = "\n".join(searches.lines(knee(0.0005), TITLE))
    assert "Throughput stops rising at 32 [28, 40] connections" in told
    assert "X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1)), of 8 closed loops" in told
    assert "Throughput peaks at 43.6 " in told


def test_without_a_peak_nothing_is_made_up() -> None:
    told = "\n".join(searches.lines(knee(0.0), TITLE))
    assert "peaks at" not in told
    assert "No peak within what was tried, because κ may be 0" in told
