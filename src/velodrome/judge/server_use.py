"""What the CPU time of a server's threads says: whether it had room left, in words too."""

from velodrome.model import quantity
from velodrome.model.bottleneck import ServerUse

BUSY = 0.85
"""A thread that had so much of a CPU has no room left to speak of: waking up takes the rest."""
WAITED = 0.1
"""From this share of the time on, waiting for a CPU matters."""


def is_busy(server: ServerUse) -> bool:
    """Whether its busiest thread, or all its CPUs, had no room left; what waits for a CPU has none."""
    wanted = server.busiest_cpu_s + server.busiest_queued_s
    return wanted >= BUSY * server.span_s or _uses_all(server)


def is_full(server: ServerUse) -> bool:
    """Whether its busiest thread, or all its CPUs, ran nearly all the time: waiting for a CPU is not running."""
    return _runs(server) or _uses_all(server)


def used(server: ServerUse) -> str:
    """Return which of a full server's threads ran, and how much: `the server's busiest thread 97 % of a CPU`."""
    if _runs(server):
        return (
            f"the server's busiest thread {quantity.percent(server.busiest_cpu_s / server.span_s)} of a CPU"
        )
    return f"the server's threads all of its {server.cpus} CPUs"


def why(server: ServerUse | None) -> str:
    """Return what the server's CPU time says, to follow a claim that it was the limit."""
    if server is None:
        return ""
    busiest, queued = server.busiest_cpu_s / server.span_s, server.busiest_queued_s / server.span_s
    if busiest + queued >= BUSY:
        waited = ""
        if queued >= WAITED:
            waited = f" and waited {quantity.percent(queued)} of the time for one that others had"
        return f": its busiest thread had {quantity.percent(busiest)} of a CPU{waited}"
    if _uses_all(server):
        return f": its threads used all of its {server.cpus} CPUs"
    return (
        f", though its busiest thread used only {quantity.percent(busiest)} of a CPU: its workers are too few, or wait "
        "for something else"
    )


def _runs(server: ServerUse) -> bool:
    return server.busiest_cpu_s >= BUSY * server.span_s


def _uses_all(server: ServerUse) -> bool:
    return server.cpu_s >= BUSY * server.span_s * server.cpus
