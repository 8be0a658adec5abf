"""The network between generator and server."""

from dataclasses import dataclass

CONGESTION = ("cubic", "reno", "bbr")
"""Congestion controls of TCP that may be asked for; which of them there are is the kernel's affair."""


@dataclass(frozen=True)
class Link:
    """A path with delay, a bottleneck and loss; the same in both directions unless told.

    Without one, generator and server talk over loopback.
    """

    rtt_ms: float = 0.0
    """Added round-trip time; half of it each way."""
    jitter_ms: float = 0.0
    """Each way's delay varies by up to this much either side; packets keep their order."""
    rate_mbit: float | None = None
    """Of the bottleneck, each way, in 10^6 bits per second; None: not limited."""
    loss: float = 0.0
    """Share of packets lost, each way, 0 to 1."""
    queue_packets: int | None = None
    """Room in the queue before the bottleneck; None: one bandwidth-delay product, 100 packets at least."""
    congestion: str = "cubic"
    """Congestion control of TCP at both ends: one of `CONGESTION`."""

    @property
    def label(self) -> str:
        """Short name: `rtt160ms`, `rtt80ms-100mbit-loss1%`."""
        parts = [f"rtt{self.rtt_ms:g}ms"]
        parts += [f"jitter{self.jitter_ms:g}ms"] if self.jitter_ms else []
        parts += [f"{self.rate_mbit:g}mbit"] if self.rate_mbit is not None else []
        parts += [f"loss{self.loss * 100:g}%"] if self.loss else []
        parts += [f"queue{self.queue_packets}"] if self.queue_packets is not None else []
        parts += [self.congestion] if self.congestion != "cubic" else []
        return "-".join(parts)
