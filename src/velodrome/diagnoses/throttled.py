"""A CPU quota that many threads spend in the first part of each period: then all of them stand till its end."""

from velodrome.diagnoses.fault import (
    Absent,
    Counting,
    Experiment,
    Fault,
    Screened,
    Unknown,
    counting,
    filling,
)
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Setting, Symptoms

LEAST = 0.1
"""Share of the periods in which the quota was spent, from which on it is looked into."""
GLANCED = 0.05
ROUNDING = 0.1
SPENT = 0.9
"""CPUs in use, over those that the quota pays for, from which on a load spends it in most periods."""
SECONDS = 2.0


def look(setting: Setting) -> Probe:
    """Load the server and read what its control groups count."""
    return Probe(
        "quota", "a closed loop of 8 connections", "periods in which the quota was spent", seconds=1.2
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether the quota is spent by more CPUs than it pays for."""
    found = counting(
        seen,
        "throttled",
        look(seen.setting),
        LEAST,
        none=Absent("no control group that it is in has a CPU quota that was in force"),
    )
    if not isinstance(found, Counting):
        return found
    figures = found.met.figures
    # Where the groups do not show it: while the quota is spent in every period, what is used is the quota.
    paid = figures.get("paid", figures.get("cpus", 0.0))
    count = int(paid + ROUNDING)
    if count < 1 or count >= seen.server_cpus:
        return Unknown(
            f"{found.said}: the quota pays for less than one of its {seen.server_cpus} CPUs, or for all of them, so "
            "fewer of them are no cure, and a quota can be raised by its owner alone"
            if count < 1
            else f"{found.said}: it already runs on no more CPUs than the quota pays for ({seen.server_cpus})"
        )
    cure = Cure(
        "no quota (a share, or as many whole CPUs), or no more workers and threads than the quota pays for",
        "the control group (Kubernetes: limits.cpu; Docker: --cpus), or the server's command line",
        f"{seen.server_cpus} CPUs spend a quota of {significant(paid, 2)}",
        f"{count} CPU{'s' * (count > 1)}: --cpuset-cpus, taskset, or as many workers",
    )
    fewer = Treatment(f"on {count} of its {seen.server_cpus} CPUs", {"cpus": count})
    experiment = Experiment(fewer, _spending(seen, paid), cure, ("p99_ms", "rps"), seconds=SECONDS)
    return found.suspect(0.8, experiment, loss=0.4)


def _spending(seen: Symptoms, paid: float) -> int:
    """Return the fewest connections that use all CPUs and spend the quota.

    With more the CPU is short in either arm, and how long requests wait for it hides how long all of them stand still.
    """
    points = seen.slope.points if seen.slope else ()
    spending = (point.connections for point in points if point.cpus >= SPENT * paid)
    return min((count for count in spending if count >= seen.server_cpus), default=filling(seen))


def glance(seen: Symptoms) -> str:
    """Look for time in which control groups kept the server from the CPU."""
    counted = seen.counted
    if counted is None or counted.throttled is None or counted.throttled < GLANCED:
        return ""
    return f"a CPU quota kept the server from the CPU for {counted.throttled:.0%} of the time"


fault = Fault(
    "throttled",
    "jerky although the CPU is not busy: a CPU quota and more threads than it pays for; no quota, or fewer",
    ("kubernetes-mixin#108",),
    "Threads on several CPUs spend the quota early in each period (100 ms), and stand for the rest of it.",
    "On as many CPUs as the quota pays for, p99 or throughput is better; the median may be longer, since requests then "
    "share these.",
    screen,
    look=look,
    glance=glance,
)
