"""What the network between generator and server carried over the measured span."""

from dataclasses import dataclass


@dataclass(frozen=True)
class WayFacts:
    """One direction of a link over the measured span; packets as they would be on a wire."""

    packets: int
    """Sent into it."""
    bytes: int
    """From the IP header on."""
    lost: int | None
    """By chance, as asked for; None: counted with those dropped."""
    dropped: int
    """Because the queue before the bottleneck was full."""


@dataclass(frozen=True)
class LinkFacts:
    """The network between generator and server over the measured span."""

    joined_by: str
    """`relay`, velodrome's own, or `netem`, the kernel's."""
    congestion: str
    """Congestion control of TCP, as a connection told it."""
    rtt_ms: float
    """Of a handshake before the load."""
    there: WayFacts
    """Generator to server."""
    back: WayFacts
    retransmitted: int | None
    """Segments that TCP of both ends sent again."""
    overrun: int
    """Packets the link itself lost, because it did not keep up. None should be."""
    late_p50_ms: float | None
    """How much later than asked packets came out, at most; None: netem does not tell."""
    late_p99_ms: float | None
    late_max_ms: float | None
    hdr_late: str = ""
    """HdrHistogram V2, compressed, base64; values in nanoseconds."""
    cpu_s: float | None = None
    """CPU of the relay; None: netem's is the kernel's."""
    realtime: bool | None = None
    """Whether the relay had priority over everything else on its CPU."""
