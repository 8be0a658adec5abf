from tests.report.made_up_capacity import TITLE, knee, rate

from velodrome.model.quantity import Interval
from velodrome.model.search import (
    Ending,
)
from velodrome.report import searches


def test_the_highest_rate_is_told_with_cost_and_bound() -> None:
    told = "\n".join(searches.lines(rate(Ending.CONVERGED, Interval(404, 412, 420)), TITLE))
    said = "with p99 < 200ms and errors < 0.1% (Poisson arrivals): 412/s [404, 420], 95 %, of 3 loads."
    assert said in told
    assert "4 700 µs a request" in told
    assert "There its CPU is in use to 97 %." in told
    assert "26 loads in 96 s." in told


def test_what_never_holds_says_why() -> None:
    said = searches.sentence(rate(Ending.NEVER, None, "p99 was 300 ms, and the limit is 200 ms"))
    assert said == (
        "There is no rate with p99 < 200ms and errors < 0.1% (Poisson arrivals), because even at 50.0/s p99 was "
        "300 ms, and the limit is 200 ms."
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
