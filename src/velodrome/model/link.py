"""The network between generator and server."""

import math
from dataclasses import dataclass

CONGESTION = ("cubic", "reno", "bbr")
"""Congestion controls of TCP that may be asked for; which of them there are is the kernel's affair."""

MTU = 1500
"""Bytes of the largest IP packet, as on Ethernet."""
SEGMENT = MTU - 52
"""Bytes of payload in the largest TCP segment: 20 for IP, 20 for TCP, 12 for its time stamps (RFC 7323)."""
FIRST_WINDOW = 10
"""Segments that TCP sends before it has heard anything (RFC 6928)."""
LEAST_ROOM = 100
"""Packets in the queue of a short link: one bandwidth-delay product would be too few for a burst."""


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
    def each_way_ms(self) -> float:
        """Delay of each direction."""
        return self.rtt_ms / 2

    @property
    def room(self) -> int | None:
        """How many packets may wait before the bottleneck; None: there is none to wait for."""
        if self.rate_mbit is None:
            return None
        if self.queue_packets is not None:
            return self.queue_packets
        return max(LEAST_ROOM, math.ceil(self.rate_mbit * self.rtt_ms * 1e3 / 8 / MTU))

    def fetch_s(self, sent: int, received: int) -> float:
        """Return the seconds a request and its answer, so many bytes each, take on a new connection at least.

        One round trip to connect; one for each window of the request and of the answer, which slow start doubles each
        time (RFC 5681), but the last of the one carries the first of the other; and the time on the bottleneck.
        """
        rounds = self._windows(sent) + self._windows(received)
        wire = 0.0 if self.rate_mbit is None else (sent + received) * 8 / self.rate_mbit / 1e6
        return rounds * self.rtt_ms / 1e3 + wire

    @staticmethod
    def _windows(size: int) -> int:
        return max(1, math.ceil(math.log2(size / (SEGMENT * FIRST_WINDOW) + 1)))

    @property
    def told(self) -> str:
        """Completes «over a link of …»: `160 ms, 100 Mbit/s, 1 % loss`."""
        parts = [f"{self.rtt_ms:g} ms" + (f" ± {2 * self.jitter_ms:g}" if self.jitter_ms else "")]
        parts += [f"{self.rate_mbit:g} Mbit/s"] if self.rate_mbit is not None else []
        parts += [f"a queue of {self.queue_packets}"] if self.queue_packets is not None else []
        parts += [f"{self.loss * 100:g} % loss"] if self.loss else []
        parts += [self.congestion] if self.congestion != "cubic" else []
        return ", ".join(parts)

    @property
    def typed(self) -> str:
        """As `--link` takes it, without losing a digit that matters: `rtt=160ms,rate=100mbit,loss=1%`."""
        parts = [f"rtt={_digits(self.rtt_ms)}ms"]
        parts += [f"jitter={_digits(self.jitter_ms)}ms"] if self.jitter_ms else []
        parts += [f"rate={_digits(self.rate_mbit)}mbit"] if self.rate_mbit is not None else []
        parts += [f"loss={_digits(self.loss * 100)}%"] if self.loss else []
        parts += [f"queue={self.queue_packets}"] if self.queue_packets is not None else []
        parts += [f"congestion={self.congestion}"] if self.congestion != "cubic" else []
        return ",".join(parts)

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


def _digits(number: float) -> str:
    """Write a number plainly, because nobody types an exponent."""
    return f"{number:.9f}".rstrip("0").rstrip(".")
