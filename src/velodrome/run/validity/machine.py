"""Did the machine belong to this trial: steal, other programs, swap; and was the third party on time?"""

from velodrome.model.measurement import Flag, FlagKind, Severity
from velodrome.run.validity.evidence import Check, Evidence, milliseconds, percent

STEAL_TOLD, STEAL_INVALID = 0.01, 0.05
"""Shares of all CPUs. What is stolen may all be the server's: on two CPUs 5 % can be a tenth of its time."""
OTHER_TOLD, OTHER_INVALID = 0.05, 0.15
"""Shares of all CPUs: what the server's CPU loses if other work lands anywhere. 15 % is four times the spread
of throughput between repeats (3.5 %)."""
SWAP_BYTES = 1 << 20
"""A page or two may go at any time; a megabyte within seconds is a machine short of memory."""
LATE_SHARE = 0.05
"""Of the time a request waits by its recipe: half the tolerance of Little's law."""
LATE_LEAST_MS = 1.0
"""Below this nothing that waits on a third party can be told apart."""


def steal(evidence: Evidence) -> Flag | None:
    """CPU that this virtual machine's host gave to others."""
    stolen = evidence.sampled.host.steal_s
    share = (stolen or 0.0) / _all_cpu_s(evidence)
    if share < STEAL_TOLD:
        return None
    return Flag(
        FlagKind.CPU_STEAL,
        Severity.INVALID if share >= STEAL_INVALID else Severity.NOTE,
        f"The host of this virtual machine gave {percent(share)} of its CPU to others during the run.",
        "Run again at a quieter time, or on a machine of your own; CPU per request suffers less than "
        "requests/s.",
        {"steal_s": stolen or 0.0, "share": share},
    )


def other_load(evidence: Evidence) -> Flag | None:
    """CPU that programs outside the trial used."""
    host = evidence.sampled.host
    share = (host.other_cpu_s or 0.0) / _all_cpu_s(evidence)
    if share < OTHER_TOLD:
        return None
    most = f", '{host.busiest_other}' most of all" if host.busiest_other else ""
    return Flag(
        FlagKind.OTHER_LOAD,
        Severity.INVALID if share >= OTHER_INVALID else Severity.NOTE,
        f"Other programs used {percent(share)} of this machine's CPU during the run{most}.",
        "Close them and run again; CPU per request suffers less than requests/s.",
        {"other_cpu_s": host.other_cpu_s or 0.0, "share": share, "busiest": host.busiest_other},
    )


def swapped(evidence: Evidence) -> Flag | None:
    """Memory went to or came from disk."""
    size = evidence.sampled.host.swapped_bytes or 0
    if size < SWAP_BYTES:
        return None
    return Flag(
        FlagKind.SWAPPED,
        Severity.NOTE,
        f"The machine moved {size / 1e6:,.0f} MB between memory and disk during the run.",
        "Give it more memory, or the server fewer workers.",
        {"swapped_bytes": size},
    )


def upstream_late(evidence: Evidence) -> Flag | None:
    """The simulated third party answered later than it was told to."""
    upstream = evidence.upstream
    if upstream is None or not upstream.requests:
        return None
    allowed = max(LATE_LEAST_MS, evidence.wait_ms * LATE_SHARE)
    middle, tail = upstream.late_p50_ms or 0.0, upstream.late_p99_ms or 0.0
    if max(middle, tail) <= allowed:
        return None
    return Flag(
        FlagKind.UPSTREAM_LATE,
        Severity.INVALID if middle > allowed else Severity.NOTE,
        f"The simulated third party answered late: by {milliseconds(middle)} at p50 and "
        f"{milliseconds(tail)} at p99, "
        f"where {milliseconds(allowed)} is allowed. Part of this latency is its own.",
        "Give it a CPU of its own, or fewer requests.",
        {"late_p50_ms": middle, "late_p99_ms": tail, "allowed_ms": allowed},
    )


def _all_cpu_s(evidence: Evidence) -> float:
    return max(evidence.sampled.span_s * evidence.machine_cpus, 1e-9)


CHECKS: tuple[Check, ...] = (steal, other_load, swapped, upstream_late)
