"""The figures that conditions compare, read from a `velodrome/load/1` document.

Percentiles come from the histograms, so any can be had; with too few requests beyond it a percentile is
missing (`Histogram.supported_ms`). A request that was given up counts at its age, so a percentile that lies among those
is a lower bound of the true value. A request that was refused, or whose connection broke, has no latency at all: a
percentile that would lie among those is beyond every limit, as all figures are of a target that fell silent.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache
from typing import Any

from velodrome.judge import bottleneck
from velodrome.judge.histograms import Histogram, decode, values_needed
from velodrome.model import measurement, quantity
from velodrome.model.condition import Beyond, Figure, LoadMetric
from velodrome.model.measurement import OUTCOMES, Latency, LoadFacts
from velodrome.model.quantity import Unit

GIVEN_UP = ("timeout", "unfinished")
"""Outcomes of requests that are in the histograms at the age they had."""
MEAN_LEAVES = 0.01
"""A mean bears as many requests without a latency as a p99."""


def figures(document: Mapping[str, Any]) -> Callable[[LoadMetric, bool], Figure]:
    """Return what looks a metric up in a document; histograms are decoded once, when first needed."""
    histogram = cache(lambda span: _histogram(document, span))
    silent = cache(lambda: bottleneck.silent_after(document))

    def look_up(metric: LoadMetric, counted: bool) -> Figure:
        if not document["requests"] and metric.unit is not Unit.COUNT:
            return Figure(None, "no request was made")
        if not metric.span:
            return _if_silent(Figure(_count(document, metric, counted)), metric, silent)
        return _if_silent(_of_span(document, metric, histogram), metric, silent)

    return look_up


def _if_silent(found: Figure, metric: LoadMetric, silent: Callable[[], float | None]) -> Figure:
    """Return a figure, beyond every limit where the target fell silent and the figure shows that."""
    beyond = _OF_SILENCE.get(metric.span or metric.statistic)
    if found.value is None or beyond is None or (after_s := silent()) is None:
        return found
    return replace(found, beyond=beyond, but=bottleneck.silence_sentence(after_s))


_OF_SILENCE = {"due": Beyond.ABOVE, "sent": Beyond.ABOVE, "errors": Beyond.ABOVE, "rate": Beyond.BELOW}
"""What of a load is out of bounds once the target is silent: whoever asks then never gets an answer."""


def figures_of(facts: LoadFacts, *, open_loop: bool) -> Callable[[LoadMetric, bool], Figure]:
    """Return what looks a metric up in the facts that a trial keeps of a load: phases are not among them."""
    return figures(
        {
            "requests": facts.requests,
            "ok": facts.ok,
            "duration_s": facts.duration_s,
            "throughput_rps": facts.throughput_rps,
            "mean_in_flight": facts.mean_in_flight,
            "outcomes": {**dict.fromkeys(OUTCOMES, 0), **facts.outcomes},
            "latency_ms": {"due": _row(facts.due), "sent": _row(facts.sent)},
            "lag_ms": _row(facts.lag),
            "first_message_ms": facts.first_due and {"due": _row(facts.first_due)},
            "deliveries": facts.delivery_due and {"latency_ms": {"due": _row(facts.delivery_due)}},
            "hdr": {"due": facts.hdr_due, "sent": facts.hdr_sent},
            "generator": {"cpu_s": facts.generator_cpu_s, "threads": facts.generator_threads},
            "load": {"model": "open" if open_loop else "closed"},
        }
    )


def beyond(document: Mapping[str, Any]) -> Callable[[LoadMetric, float], float | None]:
    """Return what counts the requests of a document whose latency from due or sent was above a limit, milliseconds.

    Those without an answer are above every limit. None: of this span there is no histogram.
    """
    histogram = cache(lambda span: _histogram(document, span))

    def count(metric: LoadMetric, limit_ms: float) -> float | None:
        if metric.span not in {"due", "sent"} or (found := histogram(metric.span)) is None:
            return None
        late = int(found.counts[found.highest > limit_ms * 1e6].sum())
        return float(late + sum(measurement.count_untimed(document).values()))

    return count


def beyond_of(facts: LoadFacts) -> Callable[[LoadMetric, float], float | None]:
    """Return the same of the facts that a trial keeps of a load."""
    hdr = {"due": facts.hdr_due, "sent": facts.hdr_sent}
    return beyond({"hdr": hdr, "outcomes": {**dict.fromkeys(OUTCOMES, 0), **facts.outcomes}})


def _row(latency: Latency) -> dict[str, float | None]:
    return {field.name.replace("_", "."): getattr(latency, field.name) for field in fields(latency)}


def requests_needed(metric: LoadMetric) -> int:
    """Return how many requests a metric needs before it is reported at all."""
    return 1 if metric.percentile is None else values_needed(metric.percentile)


def _count(document: Mapping[str, Any], metric: LoadMetric, counted: bool) -> float | None:
    name, requests = metric.statistic, document["requests"]
    if name in {"errors", *OUTCOMES}:
        loop = document["load"]["model"]
        count = measurement.count_failed(document, loop) if name == "errors" else document["outcomes"][name]
        return float(count) if counted else count / requests
    if name == "cpu":
        generator = document["generator"]
        had = document["duration_s"] * generator["threads"]
        return float(generator["cpu_s"] / had) if had else None
    value = document[{"rate": "throughput_rps", "in_flight": "mean_in_flight"}.get(name, name)]
    return None if value is None else float(value)


def _of_document(document: Mapping[str, Any], span: str) -> Mapping[str, float | None] | None:
    """Return the statistics of a span that the document holds ready."""
    found: Mapping[str, float | None] | None
    if span in {"due", "sent"}:
        found = document["latency_ms"][span]
    elif span == "lag":
        found = document["lag_ms"]
    elif span == "first":
        found = (document["first_message_ms"] or {}).get("due")
    elif span == "delivery":
        deliveries = document["deliveries"]
        found = deliveries["latency_ms"]["due"] if deliveries else None
    else:
        found = (document.get("phases_ms") or {}).get(span)
    return found


def _histogram(document: Mapping[str, Any], span: str) -> Histogram | None:
    text = document["hdr"].get("deliveries" if span == "delivery" else span)
    return None if text is None else decode(text)


def _of_span(
    document: Mapping[str, Any], metric: LoadMetric, histogram: Callable[[str], Histogram | None]
) -> Figure:
    statistics = _of_document(document, metric.span)
    if statistics is None or statistics.get("max") is None:
        return _among_untimed(document, metric) or Figure(None, _absent(document, metric.span))
    given_up = (
        sum(document["outcomes"].get(name, 0) for name in GIVEN_UP) if metric.span in {"due", "sent"} else 0
    )
    beyond, why = _untimed(document, metric)
    but = f"{why}: it is of the others" if why else ""
    if metric.percentile is None:
        at_least = metric.statistic == "max" and given_up > 0
        return Figure(statistics[metric.statistic], lower_bound=at_least, beyond=beyond, but=but)
    found = histogram(metric.span)
    if found is None:
        value = statistics.get(f"p{metric.percentile:g}")
        return Figure(
            value,
            ""
            if value is not None
            else f"of {metric.span} only p50, p75, p90, p95, p99 and p99.9 are reported",
        )
    value = found.supported_ms(metric.percentile)
    if value is None:
        return _among_untimed(document, metric) or Figure(
            None,
            f"it needs {requests_needed(metric)} requests, and there were {found.total}: load longer (-z), or send "
            "more (-n)",
        )
    biggest = statistics["max"]
    within = found.total * metric.percentile / 100 <= found.total - given_up
    value = value if biggest is None else min(value, biggest)
    return Figure(value, lower_bound=not within, beyond=beyond, but=but)


def _among_untimed(document: Mapping[str, Any], metric: LoadMetric) -> Figure | None:
    """Return a latency without a value that is surely that of a request without latency; None: it is not.

    That is so where as many of those lie beyond it as a percentile needs (`values_needed`) of requests with one.
    """
    beyond, why = _untimed(document, metric)
    lying = requests_needed(metric) * _leaves(metric)
    if beyond is None or sum(measurement.count_untimed(document).values()) < lying - 1e-9:
        return None
    return Figure(None, beyond=beyond, but=why)


def _leaves(metric: LoadMetric) -> float:
    """Return which share of the requests may be without a latency, and the metric has one."""
    percentile = 100.0 if metric.statistic == "max" else metric.percentile
    return MEAN_LEAVES if percentile is None else (100 - percentile) / 100


def _untimed(document: Mapping[str, Any], metric: LoadMetric) -> tuple[Beyond | None, str]:
    """Return where a latency lies that would be that of a request without latency, and why."""
    if metric.span not in {"due", "sent"}:
        return None, ""
    counts = measurement.count_untimed(document)
    share = sum(counts.values()) / document["requests"]
    if share <= _leaves(metric) + 1e-9 or not counts:
        return None, ""
    kinds = ", ".join(name.replace("_", " ") for name in counts)
    return (
        Beyond.ABOVE,
        f"{quantity.percent(share)} of the requests have no latency ({kinds})",
    )


def _absent(document: Mapping[str, Any], span: str) -> str:
    """Return why a span was not measured."""
    if span == "lag" and document["load"]["model"] == "closed":
        return "in a closed loop nothing is due before it is sent; give a rate (-R)"
    if span == "tls":
        return "no connection had a TLS handshake"
    if span == "first":
        return "no answer had several messages"
    if span == "delivery":
        return "there was no room"
    return "nothing was measured of it"
