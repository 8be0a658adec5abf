import pytest

from velodrome.model.condition import LoadMetric, load_metric
from velodrome.model.errors import UnknownLoadMetricError
from velodrome.model.quantity import Unit


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("p99", LoadMetric("p99", Unit.MILLISECONDS, "due", percentile=99.0)),
        ("sent.p99.99", LoadMetric("sent.p99.99", Unit.MILLISECONDS, "sent", percentile=99.99)),
        ("connect.max", LoadMetric("connect.max", Unit.MILLISECONDS, "connect", statistic="max")),
        ("mean", LoadMetric("mean", Unit.MILLISECONDS, "due", statistic="mean")),
        ("errors", LoadMetric("errors", Unit.SHARE, statistic="errors")),
        ("rate", LoadMetric("rate", Unit.RATE, statistic="rate")),
    ],
)
def test_a_name_is_a_statistic_of_a_span_or_a_count(name: str, metric: LoadMetric) -> None:
    assert load_metric(name) == metric


@pytest.mark.parametrize(
    "name",
    ["p100", "p0", "p99.", "p99.9999", "sent.", ".p99", "sent.errors", "tsl.p99", "P99", "sent.p99.p99", ""],
)
def test_what_a_load_does_not_tell_is_an_error(name: str) -> None:
    with pytest.raises(UnknownLoadMetricError):
        load_metric(name)


def test_a_mistyped_name_is_answered_with_the_nearest() -> None:
    for typed, meant in (
        ("eror", "errors"),
        ("sen.p99", "sent.p99"),
        ("conect.p99", "connect.p99"),
        ("timeouts", "timeout"),
    ):
        with pytest.raises(UnknownLoadMetricError, match=f"Nearest: .*{meant}"):
            load_metric(typed)
