"""What a user sets over a diff, from the texts they wrote."""

from collections.abc import Sequence

from velodrome.judge.differing.diffing import Asked
from velodrome.model.difference import DIFF_METRICS
from velodrome.model.errors import ThresholdError
from velodrome.model.threshold import margins as read_margins
from velodrome.model.threshold import threshold


def asked(thresholds: Sequence[str], margins: Sequence[str], metrics: Sequence[str]) -> Asked:
    """Return it. Raises ThresholdError."""
    for name in metrics:
        if name not in DIFF_METRICS:
            raise ThresholdError(name, f"it is not compared; these are: {', '.join(DIFF_METRICS)}")
    worse = {name: "-" if metric.more_is_better else "+" for name, metric in DIFF_METRICS.items()}
    return Asked(
        margins=read_margins(margins, worse),
        metrics=tuple(metrics),
        thresholds=tuple(threshold(text, worse) for text in thresholds),
    )
