"""Facts of this machine that figures depend on, as plain values for the header of the results."""

import os
import platform
import pwd
import re
import sys
from contextlib import suppress
from pathlib import Path

import psutil

from velodrome.model.results import Machine
from velodrome.run.account import acting
from velodrome.run.machine.placement import cores, quota_cpus, usable_cpus

CPU_FOLDER = Path("/sys/devices/system/cpu")


def facts() -> Machine:
    """Return what is known; None for what the system does not tell. Takes a few milliseconds."""
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
