"""What stood beside the server and its load: the third party, databases, idle connections."""

from dataclasses import dataclass


@dataclass(frozen=True)
class UpstreamFacts:
    """The simulated third party over the measured span."""

    requests: int
    cpu_s: float
    late_p50_ms: float | None
    late_p99_ms: float | None


@dataclass(frozen=True)
class IdleFacts:
    """Connections that were to be held open beside the load, nothing ever sent on them (`Load.idle`)."""

    asked: int
    opened: int
    """Before the load."""
    accepted: int | None
    """Of these, how many the server had taken in when the load began; the others lay in its listen queue."""
    still_open: int
    """When the load had ended: what the server neither ended nor reset."""


@dataclass(frozen=True)
class CompanionFacts:
    """A real server beside the one under test, such as a database, over the measured span."""

    name: str
    """As recipes name it, e.g. `mariadb`."""
    version: str
    """As it tells itself."""
    cpu_s: float | None
    """All its processes together; None where it runs elsewhere, on behalf of the user."""
