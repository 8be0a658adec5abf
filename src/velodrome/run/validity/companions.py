"""Was it the database? Real servers beside the one under test share the CPUs of the load and can use them up."""

from velodrome.model.measurement import Flag, FlagKind, Severity
from velodrome.run.validity.evidence import Check, Evidence, percent

SHARE_TOLD = 0.8
"""Of the CPUs they are on: with one so busy what comes in waits several times as long as it is served.

Of a queue with one server the mean time inside is service time / (1 - utilisation): five times at 80 %, twenty at 95 %
(M/M/1; Kleinrock, «Queueing Systems» I, 1975, section 3.2).
"""
SHARE_INVALID = 0.95
"""From here on the rate is what these CPUs can do, not the server under test."""


def saturated(evidence: Evidence) -> Flag | None:
    """Databases, and who shares their CPUs, had none left: throughput and latency are theirs."""
    beside = evidence.sampled.beside_cpu_s
    if not beside:
        return None
    used_s = sum(beside.values()) + (evidence.upstream.cpu_s if evidence.upstream else 0.0)
    if evidence.beside_load:
        used_s += evidence.facts.generator_cpu_s
    share = used_s / max(evidence.sampled.span_s * evidence.beside_cpus, 1e-9)
    if share < SHARE_TOLD:
        return None
    most = max(beside, key=lambda name: beside[name])
    others = " with the generator" if evidence.beside_load else ""
    return Flag(
        FlagKind.COMPANION_SATURATED,
        Severity.INVALID if share >= SHARE_INVALID else Severity.NOTE,
        f"What the server asks ({', '.join(beside)}) used{others} {percent(min(share, 1.0))} of the CPUs it is on, "
        f"{most} the most: these figures are its limit as much as the server's.",
        "Ask less of it for each request, lower the load, or name one on another machine (--database).",
        {"cpu_share": share, "most": most, "cpu_s": beside[most]},
    )


CHECKS: tuple[Check, ...] = (saturated,)
