"""Was it the link? Its lateness, its own losses, its rate, and the CPU it shares with the generator."""

from velodrome.model.measurement import Flag, FlagKind, Severity, WayFacts
from velodrome.run.validity.evidence import Check, Evidence, count, milliseconds, percent

LATE_TOLD, LATE_INVALID = 0.1, 0.5
"""Shares of the latency shown, as for a generator that sends late."""
LATE_LEAST_MS = 0.5
"""Of a round trip; below this no decision about a server turns on it."""
PAUSE_MS = 10.0
"""Virtual machines pause for 3 to 9 ms, and a server on them pauses as well: a p99 is doubtful then, not the run."""
FULL = 0.95
"""Of the CPUs that generator and relay share: what is left goes to waking up."""

BROAD = 0.9
"""Of the rate of a bottleneck: what is left is lost to losses and to TCP's looking for it."""


def full(evidence: Evidence) -> Flag | None:
    """The bottleneck carried all it can one way: whoever answers, no more comes through."""
    link, rate = evidence.link, evidence.rate_mbit
    if link is None or not rate or not evidence.facts.duration_s:
        return None
    ways = ((link.there, "to the server"), (link.back, "back"))
    share, towards = max((_carried(way, evidence.facts.duration_s) / rate, towards) for way, towards in ways)
    if share < BROAD:
        return None
    return Flag(
        FlagKind.LINK_FULL,
        Severity.NOTE,
        f"The link was the limit: it carried {percent(min(share, 1.0))} of its {count(rate)} Mbit/s {towards}.",
        "Servers differ here only in what they send. To see them, give the link a higher rate, or lower the load.",
        {"share": share, "rate_mbit": rate},
    )


def _carried(way: WayFacts, seconds: float) -> float:
    """Megabits a second that came out at the other end; what was lost was as large as the rest."""
    out = way.packets - (way.lost or 0) - way.dropped
    return way.bytes * (out / max(way.packets, 1)) * 8e-6 / seconds


def late(evidence: Evidence) -> Flag | None:
    """Packets came out later than asked, by more than the latency shown can bear: twice in a round trip."""
    link, due = evidence.link, evidence.facts.due
    if link is None:
        return None
    told, invalid = [], False
    for name, one_way, shown in (("p50", link.late_p50_ms, due.p50), ("p99", link.late_p99_ms, due.p99)):
        both = 2 * (one_way or 0.0)
        if shown and both > LATE_LEAST_MS and both > LATE_TOLD * shown:
            told.append((both / shown, name, both, shown))
            invalid |= both > LATE_INVALID * shown and (name == "p50" or both > PAUSE_MS)
    if not told:
        return None
    _, name, both, shown = max(told)
    return Flag(
        FlagKind.LINK_LATE,
        Severity.INVALID if invalid else Severity.NOTE,
        f"The link itself was late: it added up to {milliseconds(both)} to a round trip at {name}, "
        f"and the latency shown there is {milliseconds(shown)}.",
        "Give the generator more CPUs (its relay runs there), or lower the load.",
        {"percentile": name, "late_ms": both, "due_ms": shown},
    )


def overran(evidence: Evidence) -> Flag | None:
    """The link lost packets that nobody had asked it to lose."""
    link = evidence.link
    if link is None or not link.overrun:
        return None
    return Flag(
        FlagKind.LINK_LATE,
        Severity.INVALID,
        f"The link lost {count(link.overrun)} packets because it did not keep up, besides those it was told to lose.",
        "Give the generator more CPUs (its relay runs there), lower the load, or give the link a rate.",
        {"overrun": link.overrun},
    )


def crowded(evidence: Evidence) -> Flag | None:
    """Generator and relay had used up the CPUs they share, so throughput and latency are theirs."""
    link, facts = evidence.link, evidence.facts
    if link is None or link.cpu_s is None or facts.generator_saturated:
        return None
    share = (facts.generator_cpu_s + link.cpu_s) / max(facts.duration_s * evidence.load_cpus, 1e-9)
    if share < FULL:
        return None
    return Flag(
        FlagKind.GENERATOR_SATURATED,
        Severity.INVALID,
        f"Generator and link used {percent(min(share, 1.0))} of the CPUs they share: these figures are their limit, "
        "not the server's.",
        "Give the generator more CPUs, or load from fewer connections.",
        {"cpu_share": share, "threads": facts.generator_threads},
    )


CHECKS: tuple[Check, ...] = (crowded, late, overran, full)
