"""How much a contestant can do, as text: the answer, at what cost, what bounds it."""

import math
from collections.abc import Iterator

from velodrome.model import quantity
from velodrome.model.measurement import Measurement
from velodrome.model.quantity import Interval
from velodrome.model.search import Bottom, Knee, Peak, RateCapacity, Scalability
from velodrome.report import search_text
from velodrome.report.typeset import plural, visible

LAW = "X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1))"


def sentence(found: RateCapacity | Knee) -> str:
    """Return the answer in a sentence."""
    if isinstance(found, Knee):
        return visible(search_text.of_connections(found.found))
    what = f"with {' and '.join(found.conditions)}" if found.conditions else search_text.KEEPS_UP
    return visible(search_text.of_rate(found.found, what))


def lines(found: RateCapacity | Knee, title: str) -> list[str]:
    """Return the answer under the title, then why, then what it took."""
    told = ["", f" {visible(title)}", "", f" {sentence(found)}"]
    told += [f" {line}" for line in _at_best(found.best, found.bottom)]
    if isinstance(found, Knee):
        told += ["", *(f" {line}" for line in _law(found.law))]
    return [*told, "", f" {plural(found.trials, 'load')} in {quantity.duration(found.seconds)}."]


def _at_best(best: Measurement | None, bottom: Bottom | None) -> Iterator[str]:
    if best is None:
        return
    facts = best.load
    cpus = len(best.placement.server_cpus)
    used = best.server.cpu_s / facts.duration_s if facts.duration_s else 0.0
    cost = best.cpu_us_per_request
    each = f" ({quantity.number(cost)} µs a request)" if cost else ""
    p50, p99 = quantity.milliseconds(facts.due.p50), quantity.milliseconds(facts.due.p99)
    yield (
        f"At {quantity.rate(facts.throughput_rps)}: p50 {p50} ms, p99 {p99} ms, {quantity.number(used, 2)} of "
        f"{plural(cpus, 'CPU')}{each}, {quantity.memory(best.memory_bytes)}."
    )
    if bottom is not None:
        yield f"There {bottom.sentence}."
    if best.placement.shared:
        yield "Server and generator shared a CPU: alone on these CPUs the server does more."
    for flag in best.flags:
        yield f"⚑ {visible(flag.sentence)}"


def _law(law: Scalability | None) -> Iterator[str]:
    if law is None:
        yield "Too few different numbers of connections for the Universal Scalability Law."
        return
    yield f"Universal Scalability Law, {LAW}, of {plural(law.points, 'closed loop')}:"
    yield f"  λ {_within(law.rate)}/s   what one connection gets"
    yield f"  σ {_within(law.contention)}   the part of the work that waits for its turn"
    yield f"  κ {_within(law.coherency)}   what each costs each other"
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
            least = f": if there is one, it is beyond {quantity.grouped(at.low)} connections" if at else ""
            return f"No peak within what was tried, because κ may be 0{least}."
        case _ if at is None or best is None:
            return "No peak."
        case Peak.BEYOND:
            return (
                f"By the law throughput would peak at {_within(at)} connections, further out than was tried, with "
                f"{_within(best)}/s."
            )
        case _:
            return f"Throughput peaks at {_within(at)} connections, with {_within(best)}/s, and then falls."


def _within(interval: Interval) -> str:
    low, mid, high = (_short(value) for value in (interval.low, interval.mid, interval.high))
    return f"{mid} [{low}, {high}]"


def _short(value: float) -> str:
    if math.isinf(value):
        return "∞"
    return f"{value:.2g}".replace("-", "−") if abs(value) < 0.01 else quantity.number(value)
