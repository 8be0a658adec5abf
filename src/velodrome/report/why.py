"""Why a contestant came where it came: Little's law, CPU, balance of the workers, listen queue, generator."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from velodrome.model import quantity
from velodrome.model.measurement import Measurement
from velodrome.model.verdict import Answer
from velodrome.report import names
from velodrome.report.page import anchor
from velodrome.report.typeset import plural

HEADS = (
    "rate × time = in flight (counted)",
    "server CPU",
    "workers",
    "listen queue",
    "generator CPU, lag p99",
)


IDLE = 0.05
"""Share of the CPU time below which a process without a connection does not serve."""


@dataclass(frozen=True)
class Reason:
    """The facts that explain one contestant: texts under `HEADS`."""

    name: str
    anchor: str
    cells: Sequence[str]


def reasons(answer: Answer, measured: Sequence[Measurement]) -> list[Reason]:
    """Return the explaining facts of every contestant of a question, from its block of median throughput."""
    found = []
    for standing in answer.standings:
        here = [m for m in measured if m.trial.label == standing.contestant]
        here = [m for m in here if names.is_closed(m.trial.load.label)] or here
        if not here:
            continue
        valid = [m for m in here if m.valid] or here
        one = sorted(valid, key=lambda m: m.load.throughput_rps)[len(valid) // 2]
        cells = (little(one), _cpu(one), balance(one), queue(one), generator(one))
        found.append(Reason(names.of_standing(standing), anchor(answer.question, standing.contestant), cells))
    return found


def little(measurement: Measurement) -> str:
    """Return Little's law as arithmetic: requests in flight are rate times the time each one takes.

    J. D. C. Little, «A Proof for the Queuing Formula L = λW», Operations Research 9 (1961).
    """
    load = measurement.load
    if load.sent.mean is None or load.latency_corrected or not load.duration_s:
        return quantity.MISSING
    answered = load.requests / load.duration_s
    expected = quantity.number(answered * load.sent.mean / 1e3)
    counted = f" ({quantity.number(load.mean_in_flight)})" if load.mean_in_flight is not None else ""
    return f"{quantity.number(answered)}/s × {quantity.span(load.sent.mean / 1e3)} = {expected}{counted}"


def _cpu(measurement: Measurement) -> str:
    share = measurement.server.cpu_s / max(measurement.load.duration_s, 1e-9)
    return quantity.percent(share)


def balance(measurement: Measurement) -> str:
    """Return how the workers shared the CPU time, and the connections where they are known."""
    total = sum(w.cpu_s for w in measurement.server.workers)
    # A master that only watches its workers is not one of them.
    workers = [w for w in measurement.server.workers if w.connections or w.cpu_s > IDLE * total]
    if len(workers) < 2 or not total:
        return "one"
    shares = " / ".join(f"{100 * w.cpu_s / total:.0f}" for w in workers[:8])
    connections = [w.connections for w in workers if w.connections is not None]
    known = len(connections) == len(workers) and any(connections)
    held = f" of CPU, {' / '.join(map(str, connections[:8]))} connections" if known else " of CPU"
    return f"{shares} %{held}"


def queue(measurement: Measurement) -> str:
    """Return how long the listen queue grew and what it lost."""
    facts = measurement.queue
    if facts.peak is None:
        return "not readable here"
    lost = f", {plural(facts.overflows, 'overflow')}" if facts.overflows else ""
    return f"{facts.peak} of {facts.limit if facts.limit is not None else '?'}{lost}"


def generator(measurement: Measurement) -> str:
    """Return what the generator used and how late it was."""
    load = measurement.load
    share = load.generator_cpu_s / max(load.duration_s, 1e-9)
    lag = f", {quantity.milliseconds(load.lag.p99)} ms" if load.lag.p99 is not None else ""
    return f"{quantity.percent(share)}{lag}"


def sentence(measured: Sequence[Measurement]) -> str:
    """Say what the table shows, and how far Little's law is missed at most."""
    gaps = [gap for m in measured if m.valid and (gap := _gap(m)) is not None]
    seen = (
        "Rate × time is what is in flight (Little's law): fewer in flight, or longer each, is a lower rate. "
    )
    if not gaps:
        return seen
    return (
        f"{seen}Counted and expected differ by {quantity.percent(statistics.median(gaps), 1)} in the median."
    )


def _gap(measurement: Measurement) -> float | None:
    load = measurement.load
    if not load.mean_in_flight or load.latency_corrected or load.sent.mean is None or not load.duration_s:
        return None
    return abs(load.requests / load.duration_s * load.sent.mean / 1e3 / load.mean_in_flight - 1)
