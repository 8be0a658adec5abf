"""Latency of one contestant under one load, and by whose clock: what each generator tells, and no more.

Percentiles of blocks are merged through histograms where the generator gives them. Where it gives percentiles
alone, those of all blocks together lie between the lowest and the highest of them, and this is all that is said.
"""

from collections.abc import Sequence
from dataclasses import replace

from velodrome.judge import stepping
from velodrome.judge.field import Runner, cpu_cost, failures
from velodrome.judge.histograms import EMPTY, Histogram, decode, merge
from velodrome.model.load import Load, Open
from velodrome.model.measurement import UNTOLD, LoadFacts, Measurement
from velodrome.model.verdict import DriverView, LatencyView

KEPT_UP = 0.9
"""Share of an open loop's rate below which a server did not keep up."""
FROM_DUE = "from when due"
PERCENTILES = (
    ("p50_ms", "p50", 50.0),
    ("p90_ms", "p90", 90.0),
    ("p99_ms", "p99", 99.0),
    ("p99_9_ms", "p99_9", 99.9),
)
"""Field of a view, field of a latency, percentile."""


def latency_view(runner: Runner, load: Load) -> LatencyView | None:
    """Return latencies under a load, all its blocks together; None when nothing was measured."""
    shown = runner.shown_under(load)
    if not shown:
        return None
    span = sum(one.load.duration_s for one in shown)
    answers = sum(one.load.throughput_rps * one.load.duration_s for one in shown)
    behind = isinstance(load.pace, Open) and answers < KEPT_UP * load.pace.rate * span
    due = _merged([one.load.hdr_due for one in shown])
    sent = _merged([one.load.hdr_sent for one in shown])
    told = EMPTY if behind else due if due.total else sent if _foreign(shown) else due
    costs = cpu_cost(runner, load)
    view = LatencyView(
        load=load.label,
        p50_ms=told.told_ms(50),
        p90_ms=told.told_ms(90),
        p99_ms=told.told_ms(99),
        p99_9_ms=told.told_ms(99.9),
        max_ms=told.max_ms,
        achieved_rps=answers / span if span else 0.0,
        errors=sum(failures(one, load) for one in shown),
        requests=sum(one.load.requests for one in shown),
        curve_due=due.curve(),
        curve_sent=sent.curve(),
        fell_behind=behind,
        by=_driver(shown),
        cpu_us_per_request=sum(costs.values.values()) / len(costs.values) if costs else None,
        steps=stepping.views(shown),
    )
    return view if told.total or behind or not _foreign(shown) else _as_told(view, shown)


def _foreign(shown: Sequence[Measurement]) -> bool:
    return any(one.load.driver != "velodrome" for one in shown)


def _as_told(view: LatencyView, shown: Sequence[Measurement]) -> LatencyView:
    """Return the percentiles of a generator without histograms: its own of one block, bounds of several."""
    latencies = [one.load.due if one.load.due != UNTOLD else one.load.sent for one in shown]
    requests = min(one.load.ok for one in shown)
    found: dict[str, float] = {}
    between: dict[str, tuple[float, float]] = {}
    for name, field, percentile in PERCENTILES:
        # As for histograms: with too few requests beyond it a percentile says nothing.
        enough = requests * (100 - percentile) / 100 >= (10 if percentile > 99 else 3) - 1e-9
        values = [value for one in latencies if (value := getattr(one, field)) is not None]
        if not enough or len(values) != len(latencies):
            continue
        if len(values) == 1:
            found[name] = values[0]
        else:
            between[name] = (min(values), max(values))
    slowest = [one.max for one in latencies if one.max is not None]
    if slowest:
        found["max_ms"] = max(slowest)
    return replace(view, between=between, **found)  # type: ignore[arg-type]


def _driver(shown: Sequence[Measurement]) -> DriverView:
    facts = shown[-1].load
    used = sum(one.load.generator_cpu_s / max(one.load.duration_s, 1e-9) for one in shown) / len(shown)
    return DriverView(
        name=facts.driver,
        version=facts.driver_version,
        basis=basis(facts),
        checks=facts.checks or "status and body",
        untold=tuple(untold(facts)),
        notes=tuple(dict.fromkeys(note for one in shown for note in one.load.driver_notes)),
        generator_cpus=used,
        command=facts.driver_command,
    )


def basis(facts: LoadFacts) -> str:
    """Return what the latencies of a generator are."""
    if facts.driver == "velodrome" or facts.due != UNTOLD:
        return FROM_DUE
    return f"{facts.latency_is} ({facts.driver})"


def untold(facts: LoadFacts) -> list[str]:
    """Return what a generator does not tell, of what velodrome's own does."""
    if facts.driver == "velodrome":
        return []
    told = facts.due if facts.due != UNTOLD else facts.sent
    return [
        what
        for what, missing in (
            ("latency from when due", facts.due == UNTOLD),
            ("the mean", told.mean is None),
            ("p99.9", told.p99_9 is None),
            ("the maximum", told.max is None),
            ("histograms", facts.hdr_due is None and facts.hdr_sent is None),
            ("its own lag", facts.lag == UNTOLD),
            ("what was in flight", facts.mean_in_flight is None),
            ("each second", not facts.series),
            ("which connections were answered", facts.connections_answered is None),
        )
        if missing
    ]


def _merged(texts: Sequence[str | None]) -> Histogram:
    """Merge what can be read; a histogram that is missing or cannot be read leaves its numbers out."""
    found = []
    for text in texts:
        try:
            found.append(decode(text or ""))
        except ValueError:
            return EMPTY
    return merge(found)
