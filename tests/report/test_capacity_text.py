from dataclasses import replace

from tests.report.made_up_capacity import TITLE, knee, rate, whole

from velodrome.model.quantity import Interval
from velodrome.model.search import (
    Ending,
)
from velodrome.report import searches


def test_the_highest_rate_is_reported_with_cost_and_bound() -> None:
    text = "\n".join(searches.lines(rate(Ending.CONVERGED, Interval(404, 412, 420)), TITLE))
    sentence = "with p99 < 200ms and errors < 0.1% (Poisson arrivals): 412/s [404, 420], 95 %, of 3 loads."
    assert sentence in text
    assert "4 700 µs a request" in text
    assert "There its CPU is in use to 97 %." in text
    assert "26 loads in 96 s." in text


def test_what_never_holds_says_why() -> None:
    sentence = searches.sentence(rate(Ending.NEVER, None, "p99 was 300 ms, and the limit is 200 ms"))
    assert sentence == (
        "There is no rate with p99 < 200ms and errors < 0.1% (Poisson arrivals), because even at 50.0/s p99 was "
        "300 ms, and the limit is 200 ms."
    )


def test_the_knee_is_reported_with_the_law_and_its_peak() -> None:
    text = "\n".join(searches.lines(knee(0.0005), TITLE))
    assert "Throughput stops rising at 32 [28, 40] connections" in text
    assert "X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1)), of 8 closed loops" in text
    assert "Throughput peaks at 43.6 " in text


def test_without_a_peak_nothing_is_made_up() -> None:
    text = "\n".join(searches.lines(knee(0.0), TITLE))
    assert "peaks at" not in text
    assert "No peak within what was tried, because κ may be 0" in text


def test_latency_over_load_overload_and_cold_start_stand_below_the_answer_and_what_is_left_out_is_named() -> (
    None
):
    text = "\n".join(searches.lines(whole(), TITLE))
    assert "20 % 22.0 ms [18.0, 31.0] · 50 % 31.0 ms · 80 % – · 95 % –" in text
    assert "95 %: The host took 9 % of the CPUs." in text
    assert "At 120 % for 6 s: 405/s answered, back to normal 3 s after." in text
    assert "(2.1 % never right), not back to normal within 15 s." in text
    assert "0.62 s (0.58 to 0.71 s, 6 boots)" in text
    assert "overload at 200 %: too little was left of its budget of 5 min" in text
    assert "velodrome judge 'runs/my run'" in text
    assert text.index("412/s [404, 420]") < text.index("p99)") < text.index("At 120 %")


def test_latency_over_load_is_drawn_where_it_was_measured() -> None:
    assert searches.load_chart(whole()).count("<circle") == 2
    assert searches.load_chart(rate(Ending.CONVERGED, Interval(404, 412, 420))) == ""
    assert searches.load_chart(knee(0.0)) == ""


def test_an_overload_that_says_nothing_gives_the_reason() -> None:
    spoilt = replace(whole().overload[0], goodput_rps=None, back_s=None, why="The generator used 99 %.")
    text = "\n".join(searches.lines(replace(whole(), overload=(spoilt,)), TITLE))
    assert "cannot tell, because the generator used 99 %." in text
