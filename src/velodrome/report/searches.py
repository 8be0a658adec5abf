"""What searches found, as text and as JSON: the highest rate or throughput of a target, the capacity of an app.

`velodrome load --search` writes `velodrome/search/1` (docs/search.schema.json); `velodrome capacity` adds what the
answer costs and what bounds it: `velodrome/capacity/1` (docs/capacity.schema.json).
"""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from velodrome.model import quantity
from velodrome.model.load import Arrivals
from velodrome.model.measurement import Measurement
from velodrome.model.quantity import Interval
from velodrome.model.search import (
    CAPACITY_SCHEMA,
    SEARCH_SCHEMA,
    Bottom,
    ConnectionsFound,
    Ending,
    Knee,
    LoadLatency,
    Overload,
    Peak,
    Probe,
    RateCapacity,
    RateFound,
    Sample,
    Scalability,
)
from velodrome.report.charts import AtLoad, over_load
from velodrome.report.diagnoses import suspect_lines
from velodrome.report.typeset import plural, visible

KEEPS_UP = "that the server keeps up with"
ARRIVALS: Mapping[Arrivals, str] = {"constant": "constant arrivals", "poisson": "Poisson arrivals"}
"""Holds for every rate: the same server carries less of what independent users send than of what is evenly spaced."""


def probe_line(probe: Probe, p99_ms: float | None) -> str:
    """Return `1 250/s  held   p99 5.21 ms`, or why it did not."""
    p99 = f"p99 {quantity.milliseconds(p99_ms)} ms from due"
    rate = f"{_rate(probe.rate):>9}"
    if probe.spoilt:
        return visible(f"{rate}  does not count: {probe.spoilt}")
    if probe.held is None:
        return visible(f"{rate}  cannot tell: {probe.why}")
    return visible(f"{rate}  held   {p99}" if probe.held else f"{rate}  broke  {probe.why}")


def sample_line(sample: Sample, p50_ms: float | None) -> str:
    """Return `  32 connections  12 300/s  p50 2.55 ms`."""
    p50 = quantity.milliseconds(p50_ms)
    spoilt = f"  does not count: {sample.spoilt}" if sample.spoilt else ""
    return visible(
        f"{quantity.thousands(sample.connections):>5} connections  {quantity.number(sample.rps):>7}/s  "
        f"p50 {p50} ms{spoilt}"
    )


def search_lines(
    found: RateFound | ConnectionsFound,
    best: Mapping[str, Any] | None,
    conditions: Sequence[str],
    arrivals: Arrivals,
) -> list[str]:
    """Return the report of a search that is over."""
    shown = ["", f" {search_sentence(found, conditions, arrivals)}"]
    if best is not None:
        shown.append(f" {best['limit']['sentence']}")
        shown.append(f" {best['limit']['facts']}")
    return shown


def search_sentence(
    found: RateFound | ConnectionsFound, conditions: Sequence[str], arrivals: Arrivals
) -> str:
    """Return the answer in a sentence."""
    if not isinstance(found, RateFound):
        return visible(highest_throughput(found))
    what = f"without {' or '.join(conditions)}" if conditions else KEEPS_UP
    return visible(highest_rate(found, f"{what} ({ARRIVALS[arrivals]})"))


def search_document(
    found: RateFound | ConnectionsFound,
    best: Mapping[str, Any] | None,
    conditions: Sequence[str],
    arrivals: Arrivals,
) -> dict[str, Any]:
    """Return what a program reads."""
    highest_rate = isinstance(found, RateFound)
    return {
        "schema": SEARCH_SCHEMA,
        "sought": "rate" if highest_rate else "connections",
        "conditions": list(conditions),
        **({"arrivals": arrivals} if highest_rate else {}),
        **{key: value for key, value in asdict(found).items() if key not in {"probes", "samples"}},
        "sentence": search_sentence(found, conditions, arrivals),
        "trials": [
            asdict(probe) for probe in (found.probes if isinstance(found, RateFound) else found.samples)
        ],
        "best": best,
    }


def highest_rate(found: RateFound, what: str) -> str:
    """Return the answer in a sentence; `what` follows «the highest rate»."""
    because = found.because.rstrip(".")
    match found.ending:
        case Ending.CONVERGED:
            trials = plural(len(found.probes), "load")
            of = f"{plural(found.boots, 'boot')} and {trials}" if found.boots > 1 else trials
            return f"The highest rate {what}: {_within(found.interval, '/s')}, 95 %, of {of}."
        case Ending.SPENT:
            return f"The highest rate {what} lies between {_between(found.interval)}: {because}."
        case Ending.BEYOND:
            least = found.interval.low if found.interval else 0.0
            return f"The highest rate {what} is at least {_rate(least)}: {because}."
        case Ending.NEVER:
            if not found.probes or found.probes[-1].everywhere:
                return f"There is no rate {what}: {because}."
            lowest = _rate(min(probe.rate for probe in found.probes))
            return f"There is no rate {what}, because even at {lowest} {because}."
        case _:
            return f"Cannot tell the highest rate {what}: {because}."


def claim_sentence(found: RateFound) -> str:
    """Return what may be counted on, and how it was proven; empty: nothing was."""
    claim = found.claim
    if claim is None or not claim.proofs:
        return ""
    broke = "; ".join(
        f"at {_rate(proof.rate)} {proof.why.rstrip('.')}"
        for proof in claim.proofs
        if proof.held is False and proof.why
    )
    span = quantity.duration(claim.seconds)
    if not claim.proven:
        why = broke or claim.proofs[-1].spoilt.rstrip(".") or claim.proofs[-1].why.rstrip(".")
        return visible(f"No rate was proven, in {plural(len(claim.proofs), 'load')} of {span}: {why}.")
    text = f"Count on {_rate(claim.rate)}: it held for {span} on a fresh boot."
    return visible(f"{text} Proofs at higher rates failed: {broke}." if broke else text)


def highest_throughput(found: ConnectionsFound) -> str:
    """Return the answer in a sentence."""
    because = found.because.rstrip(".")
    count, rps = _within(found.connections, ""), _within(found.rps, "/s")
    match found.ending:
        case Ending.CONVERGED:
            return f"Throughput stops rising at {count} connections, with {rps}: more of them only wait."
        case Ending.SPENT:
            return f"Throughput stops rising at {count} connections, with {rps}, and this is not sure: {because}."
        case Ending.BEYOND:
            mid = quantity.thousands(found.connections.mid if found.connections else 0)
            least = found.rps.mid if found.rps else 0.0
            return f"Throughput is at least {_rate(least)}, with {mid} connections: {because}."
        case _:
            return f"Cannot tell where throughput stops rising: {because}."


def _rate(value: float) -> str:
    return quantity.rate(value)


def _between(interval: Interval | None) -> str:
    return f"{_rate(interval.low)} and {_rate(interval.high)}" if interval else "nothing that was found"


def _within(interval: Interval | None, unit: str) -> str:
    """Return `4 210/s [4 120, 4 300]`."""
    if interval is None:
        return quantity.MISSING
    ends = (interval.low, interval.mid, interval.high)
    low, mid, high = (quantity.number(value) if unit else quantity.thousands(value) for value in ends)
    return f"{mid}{unit} [{low}, {high}]"


LAW = "X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1))"


def sentence(found: RateCapacity | Knee) -> str:
    """Return the answer in a sentence, with the CPUs that it is for."""
    scope = f" This is {found.best.scope}." if found.best else ""
    return f"{_answer(found)}{scope}"


def _answer(found: RateCapacity | Knee) -> str:
    if isinstance(found, Knee):
        return visible(highest_throughput(found.found))
    what = f"with {' and '.join(found.conditions)}" if found.conditions else KEEPS_UP
    return visible(highest_rate(found.found, f"{what} ({ARRIVALS[found.arrivals]})"))


def lines(found: RateCapacity | Knee, title: str) -> list[str]:
    """Return the answer under the title, then why, then what it took."""
    shown = ["", f" {visible(title)}", "", f" {sentence(found)}"]
    if isinstance(found.found, RateFound) and (claim := claim_sentence(found.found)):
        shown.append(f" {claim}")
    shown += [f" {line}" for line in _at_best(found.best, found.bottom)]
    if isinstance(found, Knee):
        shown += ["", *(f" {line}" for line in _law(found.law))]
    elif beside := [*_over_load(found.load), *map(_overload, found.overload)]:
        shown += ["", *(f" {line}" for line in beside)]
    if found.cold_start_s is not None:
        shown.append(f" {_cold_start(found.cold_start_s, found.cold_starts)}")
    if suspected := suspect_lines(found.suspects):
        shown += ["", *(f" {line}" for line in suspected)]
    if isinstance(found, RateCapacity):
        shown += [f" Not measured: {visible(text)}." for text in found.left_out]
    took = f"{plural(found.trials, 'load')} in {quantity.duration(found.seconds)}."
    where = [f" Judge it again: velodrome judge {shlex.quote(found.folder)}"] if found.folder else []
    return [*shown, "", f" {took}", *where]


def _over_load(points: Sequence[LoadLatency]) -> Iterator[str]:
    """Yield `Load and p99   20 % 22 ms · 50 % 31 ms · 80 % 88 ms · 95 % 190 ms [150, 260]`."""
    if not points:
        return
    latencies = " · ".join(f"{point.share * 100:g} % {_latency(point)}" for point in points)
    yield f"Load and latency (p{points[0].percentile:g})   {latencies}"
    for latency in points:
        if latency.why:
            yield f"  {latency.share * 100:g} %: {visible(latency.why)}"


def load_chart(found: RateCapacity | Knee) -> str:
    """Return latency over load as inline SVG; empty where it was not measured."""
    points = found.load if isinstance(found, RateCapacity) else ()
    known = [
        AtLoad(point.share, point.ms, point.low_ms, point.high_ms, f"{_rate(point.rate)}: {_latency(point)}")
        for point in points
        if point.ms is not None
    ]
    return str(over_load(known, f"p{points[0].percentile:g} over load")) if known else ""


def _latency(latency: LoadLatency) -> str:
    if latency.ms is None:
        return quantity.MISSING
    interval = ""
    if latency.low_ms is not None and latency.high_ms is not None:
        interval = f" [{quantity.milliseconds(latency.low_ms)}, {quantity.milliseconds(latency.high_ms)}]"
    return f"{quantity.milliseconds(latency.ms)} ms{interval}"


def _overload(overload: Overload) -> str:
    """Return `At 150 % for 6 s: 1 020/s answered, back to normal 4 s after.`"""
    at = f"At {overload.times * 100:g} % for {quantity.duration(overload.seconds)}"
    if overload.goodput_rps is None:
        return visible(
            f"{at}: cannot tell, because {overload.why[:1].lower()}{overload.why[1:].rstrip('.')}."
        )
    failed = f" ({quantity.percent(overload.failed)} never right)" if overload.failed else ""
    answered = f"{at}: {_rate(overload.goodput_rps)} answered{failed}"
    if overload.why:
        return visible(f"{answered}. {overload.why}")
    if overload.back_s is None:
        return f"{answered}, not back to normal within {quantity.duration(overload.watched_s)}."
    after = f"{quantity.duration(overload.back_s)} after" if overload.back_s else "at once"
    return f"{answered}, back to normal {after}."


def _cold_start(took: Interval, count: int) -> str:
    """Return `Cold start, to the first right answer: 0.62 s (0.58 to 0.71 s, 6 boots).`"""
    low, mid, high = (quantity.number(end, 2) for end in (took.low, took.mid, took.high))
    of = f"{low} to {high} s, {plural(count, 'boot')}" if count > 1 else plural(count, "boot")
    return f"Cold start, from its start to the first correct response: {mid} s ({of})."


def _at_best(best: Measurement | None, bottom: Bottom | None) -> Iterator[str]:
    if best is None:
        return
    facts = best.load
    cpus = len(best.placement.server_cpus)
    used = best.server.cpu_s / facts.duration_s if facts.duration_s else 0.0
    cost = best.cpu_us_per_request
    per_request = f" ({quantity.number(cost)} µs a request)" if cost else ""
    p50, p99 = quantity.milliseconds(facts.due.p50), quantity.milliseconds(facts.due.p99)
    yield (
        f"At {quantity.rate(facts.throughput_rps)}: p50 {p50} ms, p99 {p99} ms, {quantity.number(used, 2)} of "
        f"{plural(cpus, 'CPU')}{per_request}, {quantity.memory(best.memory_bytes)}."
    )
    if bottom is not None:
        yield f"There {bottom.sentence}."
    for flag in best.flags:
        yield f"⚑ {visible(flag.sentence)}"


def _law(law: Scalability | None) -> Iterator[str]:
    if law is None:
        yield "Too few different numbers of connections for the Universal Scalability Law."
        return
    yield f"Universal Scalability Law, {LAW}, of {plural(law.points, 'closed loop')}:"
    yield f"  λ {_bounds(law.rate)}/s   what a single connection gets"
    yield f"  σ {_bounds(law.contention)}   the part of the work that waits for its turn"
    yield f"  κ {_bounds(law.coherency)}   what each costs each other"
    yield f"  {_peak(law)}"
    if not law.fits:
        yield (
            f"  The law does not describe this curve: it is off by up to {quantity.percent(law.misfit)}, more than "
            "repeats differ by. Believe where throughput stops rising, not these."
        )


def _peak(law: Scalability) -> str:
    at, best = law.peak_connections, law.peak_rps
    match law.peak:
        case Peak.NONE:
            least = (
                f": if there is a peak, it is beyond {quantity.thousands(at.low)} connections" if at else ""
            )
            return f"No peak within what was tried, because κ may be 0{least}."
        case _ if at is None or best is None:
            return "No peak."
        case Peak.BEYOND:
            return (
                f"By the law throughput would peak at {_bounds(at)} connections, further out than was tried, with "
                f"{_bounds(best)}/s."
            )
        case _:
            return f"Throughput peaks at {_bounds(at)} connections, with {_bounds(best)}/s, and then falls."


def _bounds(interval: Interval) -> str:
    low, mid, high = (_short(value) for value in (interval.low, interval.mid, interval.high))
    return f"{mid} [{low}, {high}]"


def _short(value: float) -> str:
    if math.isinf(value):
        return "∞"
    return f"{value:.2g}".replace("-", "−") if abs(value) < 0.01 else quantity.number(value)


def document(found: RateCapacity | Knee, title: str) -> dict[str, Any]:
    """Return it as plain values."""
    search = found.found
    of_rate = isinstance(search, RateFound)
    searched = {
        key: value for key, value in asdict(search).items() if key not in {"probes", "samples", "ending"}
    }
    return {
        "schema": CAPACITY_SCHEMA,
        "sought": "rate" if of_rate else "connections",
        "of": title,
        "cpus": found.best.for_cpus if found.best else None,
        "ending": search.ending.value,
        "conditions": list(found.conditions) if isinstance(found, RateCapacity) else [],
        **({"arrivals": found.arrivals} if isinstance(found, RateCapacity) else {}),
        **searched,
        "sentence": sentence(found),
        "bound": asdict(found.bottom) if found.bottom else None,
        "law": _finite(asdict(found.law)) if isinstance(found, Knee) and found.law else None,
        "tried": [
            asdict(probe) for probe in (search.probes if isinstance(search, RateFound) else search.samples)
        ],
        "best": of_measurement(found.best) if found.best else None,
        "trials": found.trials,
        "seconds": found.seconds,
        **(_beside(found) if isinstance(found, RateCapacity) else {}),
        "cold_start_s": asdict(found.cold_start_s) if found.cold_start_s else None,
        "cold_starts": found.cold_starts,
        "folder": found.folder,
        "suspects": [asdict(suspected) for suspected in found.suspects],
    }


def _beside(found: RateCapacity) -> dict[str, Any]:
    return {
        "load": [asdict(load_latency) for load_latency in found.load],
        "overload": [asdict(overload) for overload in found.overload],
        "left_out": list(found.left_out),
    }


def of_measurement(measured: Measurement) -> dict[str, Any]:
    """Return what one load gave and cost, as a program reads it."""
    facts, server = measured.load, measured.server
    return {
        "load": asdict(measured.trial.load),
        "throughput_rps": facts.throughput_rps,
        "latency_ms": {"due": asdict(facts.due), "sent": asdict(facts.sent)},
        "errors": facts.requests - facts.ok,
        "requests": facts.requests,
        "cpu_us_per_request": measured.cpu_us_per_request,
        "server_cpus": server.cpu_s / facts.duration_s if facts.duration_s else None,
        "memory_bytes": measured.memory_bytes,
        "command": list(measured.command),
        "python": measured.python,
        "packages": dict(measured.packages),
        "flags": [{"kind": flag.kind.value, "sentence": flag.sentence} for flag in measured.flags],
    }


def _finite(value: Any) -> Any:
    """JSON has no infinity: an end that is not known is null."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
