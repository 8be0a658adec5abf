"""What the machine saw over the measured span: the listening socket, everything else that ran, who ran where."""

from dataclasses import dataclass


@dataclass(frozen=True)
class QueueFacts:
    """The listening socket over the measured span."""

    peak: int | None
    limit: int | None
    overflows: int | None
    drops: int | None


@dataclass(frozen=True)
class HostFacts:
    """The rest of the machine over the measured span; seconds of CPU."""

    steal_s: float | None
    other_cpu_s: float | None
    """Used by processes that are not server, generator, upstream or velodrome itself."""
    busiest_other: str = ""
    """Name of the other process that used most, when it used a tenth of a CPU or more."""
    swapped_bytes: int | None = None
    """Moved from and to swap space by the whole machine."""
    closed_unread: int | None = None
    """Connections that any process closed with data unread in them, which resets them (`TCPAbortOnClose`)."""


@dataclass(frozen=True)
class Placement:
    """Who ran where and how it was enforced."""

    server_cpus: tuple[int, ...]
    load_cpus: tuple[int, ...]
    upstream_cpus: tuple[int, ...]
    shared: bool
    """Whether server and generator share a CPU."""
    enforced_by: str
    """`cgroup v1`, `cgroup v2`, `affinity and rlimits`, or `nothing`."""
    notes: tuple[str, ...] = ()

    @property
    def own_cpus(self) -> int:
        """How many CPUs the server has to itself."""
        return len({*self.server_cpus} - {*self.load_cpus, *self.upstream_cpus})
