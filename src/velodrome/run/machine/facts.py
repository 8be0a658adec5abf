"""This machine: which CPUs velodrome may use, how they are shared out, and what else figures depend on.

Server, generator and third party run apart where there are enough CPUs; where there are not, the placement says so.

    1 CPU    all share it
    2 CPUs   server on the first; generator and third party on the second
    more     generator and third party get a quarter and an eighth (at least one each), the server the rest

`Limits.cpus` gives the server another number, or all; what is then too few for the others is shared. Where it is more
than there are, the server has all.

Every load ends with a look at the CPUs, so what only `facts` needs is imported by it.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from velodrome.model.errors import LimitError
from velodrome.model.load import Limits
from velodrome.model.measurement import Placement

if TYPE_CHECKING:
    from velodrome.model.results import Machine

UNLIMITED = Limits()
CPU_FOLDER = Path("/sys/devices/system/cpu")


def usable_cpus() -> tuple[int, ...]:
    """Return the CPUs velodrome itself may use: `os.cpu_count` knows neither affinity nor control groups."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def cores(cpus: Sequence[int], folder: Path = CPU_FOLDER) -> Mapping[int, int]:
    """Return the physical core of each CPU (its first hardware thread); a CPU alone where it is not reported."""
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
    """Share out `cpus`. Raises LimitError when the server is to have none.

    Hardware threads of one core go to the same party where that is possible; a core that is split is reported:
    two threads of a core take turns at the same execution units.
    """
    core_of = core_of or {}
    order = sorted(cpus, key=lambda cpu: (core_of.get(cpu, cpu), cpu))
    count = len(order)
    wanted = count if limits.cpus == "all" else limits.cpus
    if wanted is not None and wanted < 1:
        listed = ", ".join(map(str, sorted(cpus)))
        raise LimitError(
            f"cpus = {wanted}", f"velodrome may use {count} ({listed})", "Give a number from 1 on"
        )
    load = max(1, count // 4)
    upstream = max(1, count // 8) if count > 2 else 0
    server = min(wanted, count) if wanted is not None else max(1, count - load - upstream)
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
        notes=(*_too_few(wanted, count), *_notes(server_cpus, load_cpus, upstream_cpus, core_of)),
    )


def place_apart(cpus: Sequence[int], limits: Limits = UNLIMITED, load_cpus: Sequence[int] = ()) -> Placement:
    """Give the server all of `cpus`, or as many as it is limited to: agents on other hosts load it.

    `load_cpus` are those that agents use on this machine all the same. Databases that velodrome starts here get what
    the server leaves, else they share its CPUs. Raises LimitError when the server is to have none.
    """
    placed, order = place(cpus, limits), sorted(cpus)  # raises
    wanted = None if limits.cpus == "all" else limits.cpus
    count = min(len(order) if wanted is None else wanted, len(order))
    server = tuple(order[:count])
    both = sorted(set(server) & set(load_cpus))
    shared = (
        (f"agents that load use CPU {', '.join(map(str, both))} of the server's machine, as the server does",)
        if both
        else ()
    )
    return replace(
        placed,
        server_cpus=server,
        load_cpus=tuple(load_cpus),
        upstream_cpus=tuple(order[count:]) or server,
        shared=bool(both),
        notes=(*_too_few(wanted, len(order)), *shared),
        apart=True,
    )


def _too_few(wanted: int | None, count: int) -> tuple[str, ...]:
    if wanted is None or wanted <= count:
        return ()
    return (f"the answer is for {wanted} CPUs, and the server has all {count} there are here",)


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


def facts() -> Machine:
    """Return what is known; None for what the system does not tell. Takes a few milliseconds."""
    import psutil  # noqa: PLC0415 - see the module

    usable = usable_cpus()
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": cpu_model(),
        "cpus": os.cpu_count(),
        "cores": len(set(cores(usable).values())),
        "usable_cpus": list(usable),
        "quota_cpus": quota_cpus(),
        "governor": _text(CPU_FOLDER / "cpu0/cpufreq/scaling_governor"),
        "turbo": turbo(),
        "memory_bytes": psutil.virtual_memory().total,
        "swap_bytes": psutil.swap_memory().total,
        "virtualisation": virtualisation(),
        "clocksource": _text(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        "congestion_control": _text(Path("/proc/sys/net/ipv4/tcp_congestion_control")),
        "somaxconn": _number(Path("/proc/sys/net/core/somaxconn")),
        "python": platform.python_version(),
        "user": _user(),
    }


def _user() -> str:
    """Return whom servers run as: never more than a name, or a number without one."""
    import pwd  # noqa: PLC0415 - see the module

    from velodrome.run.account import acting  # noqa: PLC0415

    account = acting()
    if account is not None:
        return account.name
    with suppress(KeyError):
        return pwd.getpwuid(os.geteuid()).pw_name
    return str(os.geteuid())


def cpu_model(cpuinfo: str | None = None) -> str:
    """Return the name of the CPU as its maker gives it, or its architecture."""
    if cpuinfo is None:
        cpuinfo = _text(Path("/proc/cpuinfo")) or ""
    found = re.search(r"^(?:model name|Model|cpu)\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    if found:
        return " ".join(found[1].split())
    return platform.processor() or platform.machine()


def turbo() -> str | None:
    """Return whether the clock may rise when few cores are busy: a source of drift."""
    if (intel := _text(CPU_FOLDER / "intel_pstate/no_turbo")) is not None:
        return "off" if intel == "1" else "on"
    if (others := _text(CPU_FOLDER / "cpufreq/boost")) is not None:
        return "on" if others == "1" else "off"
    return None


def cpu_features(cpuinfo: str | None = None) -> frozenset[str] | None:
    """Return what the CPUs can do, as Linux names it on x86-64 (`avx2`); None where that is not known."""
    if cpuinfo is None:
        cpuinfo = _text(Path("/proc/cpuinfo")) or ""
    found = re.search(r"^flags\s*:\s*(.+)$", cpuinfo, re.MULTILINE)
    return frozenset(found[1].split()) if found else None


def virtualisation(cpuinfo: str | None = None, product: str | None = None) -> str | None:
    """Return what the machine runs in (`kvm`, `a hypervisor`, `container on …`), or None on bare metal."""
    if sys.platform != "linux":
        return None
    cpuinfo = (_text(Path("/proc/cpuinfo")) or "") if cpuinfo is None else cpuinfo
    product = (_text(Path("/sys/class/dmi/id/product_name")) or "") if product is None else product
    hypervisor = None
    if re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE):
        hypervisor = product or "a hypervisor"
    contained = any(Path(sign).exists() for sign in ("/.dockerenv", "/run/.containerenv"))
    if contained:
        return f"container on {hypervisor}" if hypervisor else "container"
    return hypervisor


def _text(path: Path) -> str | None:
    with suppress(OSError, UnicodeDecodeError):
        return path.read_text().strip()
    return None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text is not None and text.isdigit() else None
