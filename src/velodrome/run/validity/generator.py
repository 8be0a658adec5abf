"""Was it the generator? Its CPU, its lateness, its connections, its build."""

from velodrome.model.load import Open
from velodrome.model.measurement import Flag, FlagKind, Severity
from velodrome.run.validity.evidence import Check, Evidence, count, milliseconds, percent

LAG_TOLD = 0.1
"""Share of a percentile that is the generator's lateness: a tenth is three times what repeats of a run differ
by.
"""
LAG_INVALID = 0.5
"""From here on the figure is more ours than the server's."""
LAG_LEAST_MS = 0.5
"""Below this no decision about a server turns on it."""
PAUSE_MS = 10.0
"""Virtual machines pause for 3 to 9 ms, and a server on them pauses as well: such a lag at p99 makes that p99
doubtful (a NOTE), a longer one the run."""


def saturated(evidence: Evidence) -> Flag | None:
    """The generator had no CPU left, so throughput and latency are its own."""
    facts = evidence.facts
    if not facts.generator_saturated:
        return None
    share = facts.generator_cpu_s / max(facts.duration_s * facts.generator_threads, 1e-9)
    who = "The generator" if facts.driver == "velodrome" else f"The generator {facts.driver}"
    whose = "its core" if facts.generator_threads == 1 else f"its {facts.generator_threads} cores"
    return Flag(
        FlagKind.GENERATOR_SATURATED,
        Severity.INVALID,
        f"{who} used {percent(min(share, 1.0))} of {whose}: these figures are its limit, not the server's.",
        "Give it more threads (-t) on CPUs of their own, or load from another machine.",
        {"cpu_share": share, "threads": facts.generator_threads},
    )


def lagged(evidence: Evidence) -> Flag | None:
    """Requests went out late although a connection was free, by more than the latency shown can bear."""
    shares = {}
    for percentile in ("p50", "p99"):
        lag, due = getattr(evidence.facts.lag, percentile), getattr(evidence.facts.due, percentile)
        if lag and due and lag > LAG_LEAST_MS and lag / due > LAG_TOLD:
            shares[percentile] = (lag / due, lag, due)
    if not shares:
        return None
    name = max(shares, key=lambda percentile: shares[percentile][0])
    _, late, shown = shares[name]
    spoilt = [
        lag
        for name, (share, lag, _) in shares.items()
        if share > LAG_INVALID and (name == "p50" or lag > PAUSE_MS)
    ]
    return Flag(
        FlagKind.GENERATOR_LAGGED,
        Severity.INVALID if spoilt else Severity.NOTE,
        f"The generator itself sent late: its own lag at {name} is {milliseconds(late)}, "
        f"and the latency shown there {milliseconds(shown)}.",
        "Read latency from when requests were sent, give the generator a CPU of its own, or lower the rate.",
        {"percentile": name, "lag_ms": late, "due_ms": shown},
    )


def capped(evidence: Evidence) -> Flag | None:
    """An open loop whose connections were all in use is a closed loop from then on.

    Little's law: rate x latency requests are in flight, each on a connection. Where the recipe's waiting and the
    link alone need more than allowed, no server can carry the load; otherwise the server was slow, and latency
    from due says so.
    """
    pace, facts = evidence.load.pace, evidence.facts
    if not isinstance(pace, Open):
        return None
    latency_ms = facts.sent.mean or 0.0
    needed = pace.rate * latency_ms / 1e3
    least_ms = evidence.wait_ms + evidence.rtt_ms
    impossible = pace.rate * least_ms / 1e3 > pace.connections
    if not impossible and needed < pace.connections and "capped-by-connections" not in facts.engine_flags:
        return None
    shown_ms = least_ms if impossible else latency_ms
    needed = pace.rate * shown_ms / 1e3
    facts_of_it = {
        "connections": pace.connections,
        "needed": needed,
        "rate": pace.rate,
        "latency_ms": shown_ms,
    }
    if needed <= pace.connections:
        return Flag(
            FlagKind.CAPPED_BY_CONNECTIONS,
            Severity.NOTE,
            f"All {count(pace.connections)} connections were in use for a time, and requests waited for one: "
            "latency from due has that wait in it, latency from sent has not.",
            "Allow more connections, or compare at a lower rate.",
            facts_of_it,
        )
    return Flag(
        FlagKind.CAPPED_BY_CONNECTIONS,
        Severity.INVALID if impossible else Severity.NOTE,
        f"All {count(pace.connections)} connections were in use: {count(pace.rate)}/s × "
        f"{milliseconds(shown_ms)} "
        f"needs {count(needed)}, so requests waited for a connection and the rate was not kept.",
        f"Allow {count(needed * 1.2)} connections or more; "
        "if throughput stays as it is, the server is at its limit.",
        facts_of_it,
    )


def debug_build(evidence: Evidence) -> Flag | None:
    """An engine without optimisation costs several times the CPU."""
    if not evidence.facts.generator_debug:
        return None
    return Flag(
        FlagKind.DEBUG_BUILD,
        Severity.INVALID,
        "The engine is a debug build: it is several times slower than the real one.",
        "Build it with `make dev`, which optimises.",
    )


CHECKS: tuple[Check, ...] = (debug_build, saturated, lagged, capped)
