"""What the server used over the measured span, and how it answered before."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WorkerUse:
    """One process of the server over the measured span."""

    pid: int
    cpu_s: float
    connections: int | None
    """Established connections at mid-span."""


@dataclass(frozen=True)
class ServerSample:
    """The whole process tree of the server at one moment."""

    at_s: float
    cpu_s: float
    """Since the start of the measured span."""
    rss_bytes: int
    threads: int
    processes: int
    fds: int | None
    listen_queue: int | None


@dataclass(frozen=True)
class ServerFacts:
    """The whole process tree of the server over the measured span."""

    cpu_s: float
    cpu_user_s: float
    cpu_sys_s: float
    rss_peak_bytes: int
    pss_peak_bytes: int | None
    threads_peak: int
    fds_peak: int | None
    switches_voluntary: int | None
    switches_involuntary: int | None
    workers: tuple[WorkerUse, ...]
    samples: tuple[ServerSample, ...]
    boot_s: float
    """From start to the first right answer."""


@dataclass(frozen=True)
class AnswerForm:
    """How the server wrote the head of one answer before the load."""

    length_told: bool
    """Whether its end can be known without the end of the connection: a length, or chunks."""
    line_ends: str
    """`CRLF`, or `LF` if any line ends without a carriage return."""
