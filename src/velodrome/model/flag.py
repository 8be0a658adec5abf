"""Why a measurement may not be what it seems."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class FlagKind(StrEnum):
    """What was seen. `docs/method.md` tells how each is found and what it does to a verdict."""

    GENERATOR_SATURATED = "generator-saturated"
    GENERATOR_LAGGED = "generator-lagged"
    LITTLES_LAW = "littles-law"
    ERRORS = "errors"
    NOT_STATIONARY = "not-stationary"
    CPU_STEAL = "cpu-steal"
    OTHER_LOAD = "other-load"
    LISTEN_QUEUE_OVERFLOWED = "listen-queue-overflowed"
    SERVER_DIED = "server-died"
    SERVER_RESTARTED = "server-restarted"
    DEBUG_BUILD = "debug-build"
    CAPPED_BY_CONNECTIONS = "capped-by-connections"
    TOO_SHORT = "too-short"
    CONNECTIONS_NEVER_IN = "connections-never-in"
    IDLE_WORKERS_BURN = "idle-workers-burn"
    UNEQUAL_WORKERS = "unequal-workers"
    ANSWERED_BEFORE_READ = "answered-before-read"
    FOREIGN_LISTENER = "foreign-listener"
    UPSTREAM_LATE = "upstream-late"
    COMPANION_SATURATED = "companion-saturated"
    LINK_LATE = "link-late"
    LINK_FULL = "link-full"
    SWAPPED = "swapped"
    CLOSED_UNREAD = "closed-unread"
    LENGTH_NOT_TOLD = "length-not-told"
    BARE_LINE_ENDS = "bare-line-ends"
    IDLE_NOT_HELD = "idle-not-held"
    HUNG_ON_STOP = "hung-on-stop"
    BRIEF = "brief"
    ANSWERS_UNCHECKED = "answers-unchecked"

    @property
    def of_the_moment(self) -> bool:
        """Whether it tells of the machine at that moment and of nothing that was measured: once more may be well."""
        return self in {FlagKind.CPU_STEAL, FlagKind.OTHER_LOAD, FlagKind.SWAPPED}


class Severity(StrEnum):
    """`INVALID` sets the measurement aside: it never wins a ranking. `NOTE` is told beside the number."""

    INVALID = "invalid"
    NOTE = "note"


@dataclass(frozen=True)
class Flag:
    """One reason, the facts it was found by, and what to do about it."""

    kind: FlagKind
    severity: Severity
    sentence: str
    advice: str
    facts: Mapping[str, float | int | str] = field(default_factory=dict)
