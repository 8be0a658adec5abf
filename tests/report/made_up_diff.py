"""A whole diff, made up: two revisions of an app, of which one answers slower at the tail; with thresholds."""

from dataclasses import replace

from tests.judge.regression.made import AFTER_OPEN, BEFORE_OPEN, interleaved, latencies
from tests.report.made_up import HOSTILE

from velodrome.judge.regression import DiffCriteria
from velodrome.model.condition import Threshold
from velodrome.model.difference import Diff, Side

QUICK, SLOW = [5.0, 5.2, 5.4, 6.0] * 120, [5.0, 5.2, 5.4, 6.0] * 118 + [60.0] * 8
THRESHOLDS = (
    Threshold("p99", 0.5, "p99 +50%"),
    Threshold("cpu", 0.3, "cpu +30%"),
    Threshold("memory", 0.012, "memory +1.2%"),
)


def diff() -> Diff:
    before = latencies([QUICK] * 6, BEFORE_OPEN)
    after = latencies([SLOW] * 6, AFTER_OPEN)
    metrics = ("throughput", "p50", "p99", "p99.9", "cpu", "memory")
    criteria = DiffCriteria(metrics=metrics, thresholds=THRESHOLDS)
    found = interleaved(before, after, (BEFORE_OPEN, AFTER_OPEN), criteria)
    return replace(found, before=Side("HEAD~1", "4f1c2aa"), after=Side("HEAD", "9e07b31"))


def hostile() -> Diff:
    """The same with text that a server, or who names a branch, may have chosen."""
    found = diff()
    return replace(
        found,
        after=Side(HOSTILE, "`x`"),
        sentence=HOSTILE,
        differences=tuple(
            replace(difference, called=HOSTILE, reason=HOSTILE) for difference in found.differences
        ),
        set_aside=(HOSTILE,),
        notes=(HOSTILE,),
    )
