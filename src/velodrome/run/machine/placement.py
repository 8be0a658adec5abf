"""Who runs on which CPU: server, generator and third party apart where there are enough, and told where not.

    1 CPU    all share it
    2 CPUs   server on the first; generator and third party on the second
    more     generator and third party get a quarter and an eighth (at least one each), the server the rest

`Limits.cpus` gives the server another number, or all; what is then too few for the others is shared and told.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from velodrome.model.errors import LimitError
from velodrome.model.load import Limits
from velodrome.model.measurement import Placement

UNLIMITED = Limits()
CPU_FOLDER = Path("/sys/devices/system/cpu")


def usable_cpus() -> tuple[int, ...]:
    """Return the CPUs velodrome itself may use: `os.cpu_count` knows neither affinity nor control groups."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def cores(cpus: Sequence[int], folder: Path = CPU_FOLDER) -> Mapping[int, int]:
    """Return the physical core of each CPU (its first hardware thread); a CPU alone where it is not told."""
    found = {}
    for cpu in cpus:
        try:
            siblings = (folder / f"cpu{cpu}/topology/thread_siblings_list").read_text()
            found[cpu] = int(re.split("[,-]", siblings)[0])
        except (OSError, ValueError):
            found[cpu] = cpu
    return found


def place(
    cpus: Sequence[int], limits: Limits = UNLIMITED, core_of: Mapping[int, int] | None = None
) -> Placement:
    """Share out `cpus`. Raises LimitError when the server is to have more than there are.

    Hardware threads of one core go to the same party where that is possible; a core that is split is told:
    two threads of a core take turns at the same execution units.
    """
    core_of = core_of or {}
    order = sorted(cpus, key=lambda cpu: (core_of.get(cpu, cpu), cpu))
    count = len(order)
    asked = count if limits.cpus == "all" else limits.cpus
    if asked is not None and not 1 <= asked <= count:
        listed = ", ".join(map(str, sorted(cpus)))
        raise LimitError(
            f"cpus = {asked}",
            f"velodrome may use {count} ({listed})",
            f"Give a number from 1 to {count}, or start velodrome with a wider affinity",
        )
    load = max(1, count // 4)
    upstream = max(1, count // 8) if count > 2 else 0
    server = asked if asked is not None else max(1, count - load - upstream)
    spare = order[server:]
    load_cpus = spare[:load] or order[-load:]
    upstream_cpus = spare[load : load + upstream] or load_cpus
    server_cpus = order[:server]
    return Placement(
        server_cpus=tuple(server_cpus),
        load_cpus=tuple(load_cpus),
        upstream_cpus=tuple(upstream_cpus),
        shared=bool(set(server_cpus) & set(load_cpus)),
        enforced_by="nothing",
        notes=tuple(_notes(server_cpus, load_cpus, upstream_cpus, core_of)),
    )


def _notes(
    server: Sequence[int], load: Sequence[int], upstream: Sequence[int], core_of: Mapping[int, int]
) -> list[str]:
    notes = []
    both = sorted(set(server) & set(load))
    if both:
        notes.append(
            f"server and generator share CPU {', '.join(map(str, both))}: each takes time from the other"
        )
    if set(upstream) & set(load):
        notes.append("generator and third party share a CPU")
    server_cores = {core_of.get(cpu, cpu) for cpu in server}
    split = {core_of.get(cpu, cpu) for cpu in {*load, *upstream} - set(server)} & server_cores
    if split:
        notes.append("hardware threads of one core are split between server and generator")
    return notes


def quota_cpus(cgroups: str | None = None, root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Return how many CPUs' worth of time the control groups above velodrome grant it; None: unbounded.

    Sources: `cpu.max` (cgroup v2) and `cpu.cfs_quota_us` over `cpu.cfs_period_us` (v1), kernel documentation
    `admin-guide/cgroup-v2.rst` and `scheduler/sched-bwc.rst`.
    """
    if cgroups is None:
        if sys.platform != "linux":
            return None
        cgroups = Path("/proc/self/cgroup").read_text()
    found = []
    for line in cgroups.splitlines():
        _, names, path = line.split(":", 2)
        folder = root if not names else root / "cpu"
        if names and "cpu" not in names.split(","):
            continue
        for part in [Path(path), *Path(path).parents]:
            found.append(_quota_of(folder / str(part).lstrip("/")))
    return min((quota for quota in found if quota is not None), default=None)


def _quota_of(folder: Path) -> float | None:
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text()
            period = (folder / "cpu.cfs_period_us").read_text()
        return int(quota) / int(period) if int(quota) > 0 else None
    except (OSError, ValueError):
        return None  # `max`, or no such file: no bound here
