"""What bounds a contestant at its highest rate: its CPUs, its slots, or something else; by its own use of them.

By Little's law the slots in use are throughput × the time a request is in the server (J. D. C. Little, «A Proof for the
Queuing Formula: L = λW», Operations Research 9, 1961).
"""

from velodrome.model import quantity
from velodrome.model.capacity_found import Bottom, Bound
from velodrome.model.measurement import Measurement

FULL = 0.85
"""From this share on there is no room left to speak of: requests come in clumps, and waking up takes the rest."""


def bounding(measured: Measurement, slots: int | None, workers: int) -> Bottom:
    """Return what was used up; `workers` are its processes, and `slots` None where it has no such number."""
    span = max(measured.load.duration_s, 1e-9)
    used = measured.server.cpu_s / span
    cpus = len(measured.placement.server_cpus)
    had = min(cpus, workers)
    if used >= FULL * had:
        whose = "its CPU is" if had == 1 else f"its {had} CPUs are"
        one = " (one process computes on one CPU at a time)" if had < cpus else ""
        return Bottom(Bound.CPU, f"{whose} in use to {quantity.percent(min(used / had, 1.0))}{one}")
    mean_ms = measured.load.sent.mean
    if slots is not None and mean_ms is not None:
        # On the way a request holds no slot.
        mean_ms = max(0.0, mean_ms - (measured.trial.link.rtt_ms if measured.trial.link else 0.0))
        held = measured.load.throughput_rps * mean_ms / 1000
        if held >= FULL * slots:
            return Bottom(
                Bound.SLOTS,
                f"its {quantity.grouped(slots)} slot{' is' if slots == 1 else 's are'} in use: "
                f"{quantity.rate(measured.load.throughput_rps)} × {quantity.milliseconds(mean_ms)} ms",
            )
    return Bottom(
        Bound.OTHER,
        f"its CPU is in use to {quantity.percent(used / had)} only: it waits, for what it calls or for a lock",
    )
