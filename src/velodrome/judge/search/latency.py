"""Latency over load: how long responses take at parts of the capacity that was found.

    metric = shown_metric(conditions)                     # the SLO's percentile, else the p99 from due
    point = latency_at(0.8, 119.0, metric, measured)      # LoadLatency(share=0.8, ms=88.0, …)

The same percentile at every part, of the histograms of all boots together: percentiles are never averaged.
"""

from collections.abc import Iterable, Iterator, Sequence

from velodrome.judge.histograms import decode, merge
from velodrome.judge.load_figures import requests_needed
from velodrome.judge.search.holding import of_the_lab, of_the_moment
from velodrome.model.condition import Condition, LoadMetric, comparisons, load_metric
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.results import Result
from velodrome.model.search import LoadLatency

SHARES = (0.2, 0.5, 0.8, 0.95)
"""Of the estimate of the capacity."""
BOOTS = 3
"""Starts of the server that each of them is loaded on, one after the other."""
LONGEST_S = 20.0
"""Of one load, however many requests the percentile needs at a low rate."""
SPARE = 1.3
"""So many times the requests that the percentile needs are sent, on all boots together."""


def shown_metric(conditions: Iterable[Condition]) -> LoadMetric:
    """Return the first percentile of a response or service time that conditions name, else the p99 from due."""
    named = (comparison.metric for condition in conditions for comparison in comparisons(condition))
    found = (metric for metric in named if metric.percentile is not None and metric.span in {"due", "sent"})
    return next(found, load_metric("p99"))


def seconds_at(rate: float, metric: LoadMetric, least: float) -> float:
    """Return how long one load at a rate is, seconds: all boots together have enough requests, if that is bearable."""
    needed = SPARE * requests_needed(metric) / BOOTS / rate
    return max(least, min(needed, LONGEST_S))


def in_turn(boot: int) -> tuple[float, ...]:
    """Return the shares in the order in which a boot, counted from 0, is loaded with them.

    Each boot begins with another, so that what one load leaves behind (a heap that has grown, caches that are warm)
    does not always help or harm the same rate.
    """
    first = boot % len(SHARES)
    return SHARES[first:] + SHARES[:first]


def latency_at(share: float, rate: float, metric: LoadMetric, found: Sequence[Result]) -> LoadLatency:
    """Return what loads at a rate come to; those that the lab or the machine spoilt do not count."""
    counted = [result for result in found if isinstance(result, Measurement) and not _spoilt(result)]
    percentile = metric.percentile or 99.0
    texts = [result.load.hdr_sent if metric.span == "sent" else result.load.hdr_due for result in counted]
    merged = merge(decode(text) for text in texts if text)
    ms = merged.supported_ms(percentile)
    interval = merged.interval_ms(percentile)
    low, high = interval if interval is not None and interval[1] is not None else (None, None)
    why = "" if counted else next(_reasons(found), "nothing was measured")
    return LoadLatency(share, rate, percentile, ms, low, high, merged.total, len(_boots(counted)), why)


def _boots(found: Iterable[Measurement]) -> set[int]:
    return {measurement.step.boot for measurement in found if measurement.step is not None}


def _spoilt(measurement: Measurement) -> str:
    flag = of_the_lab(measurement) or of_the_moment(measurement)
    return flag.sentence if flag else ""


def _reasons(found: Iterable[Result]) -> Iterator[str]:
    for result in found:
        yield result.reason if isinstance(result, Failed) else _spoilt(result)
