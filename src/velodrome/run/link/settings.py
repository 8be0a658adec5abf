"""Settings of a new network namespace: the machine's own where the kernel begins with its defaults instead.

A server behind a link shall differ from one on loopback by the link and by nothing else.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

FOLDER = Path("/proc/sys/net")
"""Shows and sets those of the namespace of the thread that looks."""
KEPT = (
    "core/somaxconn",
    "ipv4/ip_local_port_range",
    "ipv4/tcp_abort_on_overflow",
    "ipv4/tcp_ecn",
    "ipv4/tcp_fastopen",
    "ipv4/tcp_fin_timeout",
    "ipv4/tcp_max_syn_backlog",
    "ipv4/tcp_max_tw_buckets",
    "ipv4/tcp_notsent_lowat",
    "ipv4/tcp_rmem",
    "ipv4/tcp_sack",
    "ipv4/tcp_slow_start_after_idle",
    "ipv4/tcp_syncookies",
    "ipv4/tcp_timestamps",
    "ipv4/tcp_tw_reuse",
    "ipv4/tcp_window_scaling",
    "ipv4/tcp_wmem",
)
OURS = {"ipv4/tcp_no_metrics_save": "1"}
"""Else a connection begins with what the kernel learnt from the last one to the same address: the second load of a
server would be faster than the first.
"""


def present() -> Mapping[str, str]:
    """Return the settings of the present namespace that another is to have."""
    found = {}
    for name in KEPT:
        with suppress(OSError):  # an older kernel has it for the whole machine, or not at all
            found[name] = (FOLDER / name).read_text().strip()
    return found


def apply(settings: Mapping[str, str]) -> None:
    """Give the present namespace these settings, and those that are ours; a kernel without one has its reasons."""
    for name, value in {**settings, **OURS}.items():
        with suppress(OSError):
            if (FOLDER / name).read_text().strip() != value:
                (FOLDER / name).write_text(value)


def forward(devices: Iterable[str]) -> None:
    """Make the present namespace a router between devices that have no addresses. Raises OSError."""
    (FOLDER / "ipv4/ip_forward").write_text("1")
    for device in ("all", *devices):
        # Else what comes back by a way of which the router has no address is taken for a forgery.
        (FOLDER / f"ipv4/conf/{device}/rp_filter").write_text("0")


def without_ipv6(device: str) -> None:
    """Keep a device free of IPv6, whose router solicitations would be packets of nobody's in the link."""
    with suppress(OSError):
        (FOLDER / f"ipv6/conf/{device}/disable_ipv6").write_text("1")
