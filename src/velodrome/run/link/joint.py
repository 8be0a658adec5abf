"""What joins the two ends of a link looks alike, whether it is our relay or the kernel's netem."""

from dataclasses import dataclass
from typing import Protocol

from velodrome.model.measurement import LinkFacts
from velodrome.run.link.namespace import Namespace
from velodrome.run.machine.limits import PREFIX

CLIENT, SERVER, BITS = "198.18.0.1", "198.18.0.2", 30
"""Of the range set apart for measuring networks (RFC 2544)."""
DEVICE = f"{PREFIX}0"
"""Name of the device in either namespace: at most 15 characters."""


@dataclass(frozen=True)
class Ends:
    """The two namespaces."""

    client: Namespace
    server: Namespace


class Joint(Protocol):
    """A device called `DEVICE` at either end, and what is between them."""

    @property
    def joined_by(self) -> str:
        """As `LinkFacts.joined_by`."""

    @property
    def pid(self) -> int | None:
        """The process that does it; None: the kernel."""

    @property
    def queue(self) -> int:
        """Packets a device holds until they are sent on; 0: as the kernel has it."""

    @property
    def gso_segments(self) -> int:
        """Segments that TCP may send as one packet; 0: as the kernel has it."""

    def begin(self) -> None:
        """The measured span begins. Raises LinkError."""

    def end(self, congestion: str, rtt_ms: float) -> LinkFacts:
        """Return what happened since `begin`, but what TCP sent again. Raises LinkError."""

    def stop(self) -> None:
        """Take it away; may be called again."""
