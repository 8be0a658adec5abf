import pytest

from velodrome.model.condition import DIFF_METRICS, margins, threshold
from velodrome.model.errors import ThresholdError


@pytest.mark.parametrize(
    ("text", "metric", "share"),
    [
        ("p99 +10%", "p99", 0.1),
        ("p99+10%", "p99", 0.1),
        (" p99  10 % ", "p99", 0.1),
        ("throughput -2.5%", "throughput", 0.025),
        ("throughput 5%", "throughput", 0.05),
        ("errors +0.1%", "errors", 0.001),
        ("p99 +150%", "p99", 1.5),
    ],
)
def test_a_threshold_is_a_metric_and_by_how_much_it_may_become_worse(
    text: str, metric: str, share: float
) -> None:
    found = threshold(text)
    assert (found.metric, found.text) == (metric, text.strip())
    assert found.share == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("p99 > 10ms", "write a metric and by how much it may become worse: 'p99 [+]10%'"),
        ("p98 +10%", "'p98' is not compared; these are: throughput, p50"),
        ("throughput +5%", "throughput becomes worse with -: write 'throughput -10%'"),
        ("p99 +0%", "0 % is less than anything measured can differ by"),
        ("throughput -100%", "throughput cannot become worse by 100 %"),
        ("", "write a metric"),
    ],
)
def test_what_is_no_threshold_is_refused_with_what_to_write(text: str, sentence: str) -> None:
    with pytest.raises(ThresholdError, match=sentence):
        threshold(text)


def test_a_margin_is_for_all_but_errors_or_for_one() -> None:
    every = dict.fromkeys(set(DIFF_METRICS) - {"errors"}, 0.05)
    assert margins(["5%", "p99=20%"]) == pytest.approx({**every, "p99": 0.2})
    assert margins(["p99=20%", "5%"]) == pytest.approx({**every, "p99": 0.2})
    assert margins(["errors=1%"]) == pytest.approx({"errors": 0.01})
    assert margins([]) == {}


@pytest.mark.parametrize("text", ["5", "p98=5%", "p99=", "=5%", "p99=-5%"])
def test_what_is_no_margin_is_refused(text: str) -> None:
    with pytest.raises(ThresholdError):
        margins([text])
