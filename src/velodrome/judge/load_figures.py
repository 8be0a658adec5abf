"""The figures that conditions compare, read from a `velodrome/load/1` document.

Percentiles come from the histograms, so that any can be asked for; with too few requests beyond it a percentile is
missing (`Histogram.told_ms`). A request that was given up counts at its age, so a percentile that lies among those is
a lower bound of the true one.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from velodrome.judge.histograms import Histogram, decode, needed
from velodrome.model.condition import Figure
from velodrome.model.load_metric import LoadMetric
from velodrome.model.measurement import OUTCOMES, Latency, LoadFacts
from velodrome.model.metric import Unit

GIVEN_UP = ("timeout", "unfinished")
"""Outcomes of requests that are in the histograms at the age they had."""


def figures(document: Mapping[str, Any]) -> Callable[[LoadMetric, bool], Figure]:
    """Return what looks a metric up in a document; histograms are decoded once, when first needed."""
    histogram = cache(lambda span: _histogram(document, span))

    def look_up(metric: LoadMetric, counted: bool) -> Figure:
        if not document["requests"] and metric.unit is not Unit.COUNT:
            return Figure(None, "no request was made")
        if metric.span:
            return _of_span(document, metric, histogram)
        return Figure(_count(document, metric, counted))

    return look_up


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


def _row(latency: Latency) -> dict[str, float | None]:
    return {field.name.replace("_", "."): getattr(latency, field.name) for field in fields(latency)}


def requests_needed(metric: LoadMetric) -> int:
    """Return how many requests a metric needs before it is told at all."""
    return 1 if metric.percentile is None else needed(metric.percentile)


def _count(document: Mapping[str, Any], metric: LoadMetric, counted: bool) -> float | None:
    name, requests = metric.statistic, document["requests"]
    if name in {"errors", *OUTCOMES}:
        count = requests - document["ok"] if name == "errors" else document["outcomes"][name]
        return float(count) if counted else count / requests
    if name == "cpu":
        generator = document["generator"]
        had = document["duration_s"] * generator["threads"]
        return float(generator["cpu_s"] / had) if had else None
    value = document[{"rate": "throughput_rps", "in_flight": "mean_in_flight"}.get(name, name)]
    return None if value is None else float(value)


def _told(document: Mapping[str, Any], span: str) -> Mapping[str, float | None] | None:
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
    told = _told(document, metric.span)
    if told is None or told.get("max") is None:
        return Figure(None, _absent(document, metric.span))
    given_up = (
        sum(document["outcomes"].get(name, 0) for name in GIVEN_UP) if metric.span in {"due", "sent"} else 0
    )
    if metric.percentile is None:
        return Figure(told[metric.statistic], lower_bound=metric.statistic == "max" and given_up > 0)
    found = histogram(metric.span)
    if found is None:
        value = told.get(f"p{metric.percentile:g}")
        return Figure(
            value,
            "" if value is not None else f"of {metric.span} only p50, p75, p90, p95, p99 and p99.9 are told",
        )
    value = found.told_ms(metric.percentile)
    if value is None:
        return Figure(
            None,
            f"it needs {requests_needed(metric)} requests, and there were {found.total}: load longer (-z)",
        )
    biggest = told["max"]
    within = found.total * metric.percentile / 100 <= found.total - given_up
    return Figure(value if biggest is None else min(value, biggest), lower_bound=not within)


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
