"""What happened when during one load: stalls of the event loop with their stacks, collections, and counters.

All times are seconds since the load began to be measured, so that what happened in the same second stands together.
"""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Stall:
    """A time in which the event loop gave no sign of life."""

    at_s: float
    seconds: float
    ran_s: float
    """Of that, its thread was on a CPU."""
    blocked_s: float
    """Of that, neither on a CPU nor waiting for a CPU."""
    stack: int | None
    """The stack in which it was longest, by its place in `Timeline.stacks`; None: none was taken."""


@dataclass(frozen=True)
class Collection:
    """A collection of garbage that took a millisecond or more."""

    at_s: float
    seconds: float
    generation: int
    """2: the whole heap."""


@dataclass(frozen=True)
class Counts:
    """What counters rose by since the sample before."""

    at_s: float
    cpus: float
    """CPUs that the server kept busy."""
    throttled_s: float | None
    """For how long its control groups were kept from the CPU; None: this system does not tell."""
    overflows: int | None
    """Connections that a full listen queue turned away; None: not known."""
    listen_queue: int | None
    """Connections that waited to be accepted at this moment."""


@dataclass(frozen=True)
class Timeline:
    """The load that the timeline covers."""

    load: str
    """As results call it."""
    seconds: float
    stacks: tuple[tuple[str, ...], ...]
    """Each with the place by which it is called first, then its frames from the innermost outwards."""
    stalls: tuple[Stall, ...]
    collections: tuple[Collection, ...]
    counts: tuple[Counts, ...]

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "load": self.load,
            "seconds": self.seconds,
            "stacks": [list(stack) for stack in self.stacks],
            "stalls": [asdict(stall) for stall in self.stalls],
            "collections": [asdict(collection) for collection in self.collections],
            "counts": [asdict(count) for count in self.counts],
        }
