"""A trial that could not be measured: a result too."""

from dataclasses import dataclass
from enum import StrEnum

from velodrome.model.trial import Trial


class FailureKind(StrEnum):
    """At which point a trial became impossible."""

    INSTALL = "install"
    UNAVAILABLE = "unavailable"
    START = "start"
    NEVER_ANSWERED = "never-answered"
    WRONG_ANSWER = "wrong-answer"
    DIED = "died"
    LOAD = "load"
    STOP = "stop"

    @property
    def is_missing(self) -> bool:
        """Whether something of the machine was missing, so that no server of it was started."""
        return self in (FailureKind.INSTALL, FailureKind.UNAVAILABLE)


@dataclass(frozen=True)
class Failed:
    """A trial that could not be measured: a result too."""

    trial: Trial
    started_at: str
    failure: FailureKind
    reason: str
    """One or two sentences: what happened and what to do."""
    last_lines: tuple[str, ...] = ()
    """The end of the server's output; escape before showing."""
