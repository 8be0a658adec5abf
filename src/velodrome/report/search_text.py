"""What a search tells: a line for each trial, then one sentence; and the `velodrome/search/1` document."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from velodrome.model import quantity
from velodrome.model.quantity import Interval
from velodrome.model.search import SEARCH_SCHEMA, ConnectionsFound, Ending, Probe, RateFound, Sample
from velodrome.report.typeset import visible

KEEPS_UP = "that the server keeps up with"


def probe(one: Probe, p99_ms: float | None) -> str:
    """Return `1 250/s  held   p99 5.21 ms`, or why it did not."""
    p99 = f"p99 {quantity.milliseconds(p99_ms)} ms from due"
    asked = f"{_rate(one.rate):>9}"
    if one.spoilt:
        return visible(f"{asked}  does not count: {one.spoilt}")
    if one.held is None:
        return visible(f"{asked}  cannot tell: {one.why}")
    return visible(f"{asked}  held   {p99}" if one.held else f"{asked}  broke  {one.why}")


def sample(one: Sample, p50_ms: float | None) -> str:
    """Return `  32 connections  12 300/s  p50 2.55 ms`."""
    p50 = quantity.milliseconds(p50_ms)
    spoilt = f"  does not count: {one.spoilt}" if one.spoilt else ""
    return visible(
        f"{quantity.grouped(one.connections):>5} connections  {quantity.number(one.rps):>7}/s  p50 {p50} ms{spoilt}"
    )


def lines(
    found: RateFound | ConnectionsFound, best: Mapping[str, Any] | None, conditions: Sequence[str]
) -> list[str]:
    """Return what is told when a search is over."""
    told = ["", f" {sentence(found, conditions)}"]
    if best is not None:
        told.append(f" {best['limit']['sentence']}")
        told.append(f" {best['limit']['facts']}")
    return told


def sentence(found: RateFound | ConnectionsFound, conditions: Sequence[str]) -> str:
    """Return the answer in a sentence."""
    if not isinstance(found, RateFound):
        return visible(of_connections(found))
    return visible(of_rate(found, f"without {' or '.join(conditions)}" if conditions else KEEPS_UP))


def document(
    found: RateFound | ConnectionsFound, best: Mapping[str, Any] | None, conditions: Sequence[str]
) -> dict[str, Any]:
    """Return what a program reads."""
    of_rate = isinstance(found, RateFound)
    return {
        "schema": SEARCH_SCHEMA,
        "sought": "rate" if of_rate else "connections",
        "conditions": list(conditions),
        **{key: value for key, value in asdict(found).items() if key not in {"probes", "samples"}},
        "sentence": sentence(found, conditions),
        "trials": [asdict(one) for one in (found.probes if isinstance(found, RateFound) else found.samples)],
        "best": best,
    }


def of_rate(found: RateFound, what: str) -> str:
    """Return the answer in a sentence; `what` follows «the highest rate»."""
    because, trials = found.because.rstrip("."), f"{len(found.probes)} trials"
    match found.ending:
        case Ending.CONVERGED:
            return f"The highest rate {what}: {_within(found.interval, '/s')}, 95 %, after {trials}."
        case Ending.SPENT:
            return f"The highest rate {what} lies between {_between(found.interval)}: {because}."
        case Ending.BEYOND:
            least = found.interval.low if found.interval else 0.0
            return f"The highest rate {what} is at least {_rate(least)}: {because}."
        case Ending.NEVER:
            if not found.probes or found.probes[-1].everywhere:
                return f"There is no rate {what}: {because}."
            lowest = _rate(min(one.rate for one in found.probes))
            return f"There is no rate {what}, because even at {lowest} {because}."
        case _:
            return f"Cannot tell the highest rate {what}: {because}."


def of_connections(found: ConnectionsFound) -> str:
    """Return the answer in a sentence."""
    because = found.because.rstrip(".")
    count, rps = _within(found.connections, ""), _within(found.rps, "/s")
    match found.ending:
        case Ending.CONVERGED:
            return f"Throughput stops rising at {count} connections, with {rps}: more of them only wait."
        case Ending.SPENT:
            return f"Throughput stops rising at {count} connections, with {rps}, and this is not sure: {because}."
        case Ending.BEYOND:
            mid = quantity.grouped(found.connections.mid if found.connections else 0)
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
    low, mid, high = (quantity.number(value) if unit else quantity.grouped(value) for value in ends)
    return f"{mid}{unit} [{low}, {high}]"
