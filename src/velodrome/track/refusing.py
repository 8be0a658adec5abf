"""What is told of an app that answers wrongly or is not served at all, and which of several such refusals to tell.

Each question finds it out in its own way (one boot, a heat, a bench); this is told of all.
"""

from collections.abc import Sequence

from velodrome.model.app import App
from velodrome.model.errors import AppAnswersWrongError, AppNotServedError, NoServerError
from velodrome.model.measurement import FailureKind

LAST_LINES = 8
"""Of a server's output that are told."""

Refused = AppAnswersWrongError | AppNotServedError


def refused(app: App, label: str, kind: FailureKind, reason: str, last_lines: Sequence[str] = ()) -> Refused:
    """Return what is raised where a boot or a heat failed; `label` names the stack with its settings."""
    said, lines = _told(label, reason, last_lines)
    if kind is FailureKind.WRONG_ANSWER:
        return AppAnswersWrongError(app.path, label, said, lines, app.simulated)
    return AppNotServedError(app.path, label, said, lines, tried=not kind.is_missing)


def not_served(app: App, label: str, error: NoServerError) -> AppNotServedError:
    """Return what is raised where a bench has no server, and it is the app's fault."""
    return AppNotServedError(
        app.path, label, *_told(label, error.reason, error.last_lines), tried=error.tried
    )


def most_telling(every: Sequence[Refused]) -> Refused:
    """Return the one to tell of several: a wrong answer tells most, else the first."""
    return next((one for one in every if isinstance(one, AppAnswersWrongError)), every[0])


def _told(label: str, reason: str, last_lines: Sequence[str]) -> tuple[str, Sequence[str]]:
    # Who fails is named in the reason, and by the errors as well.
    return reason.removeprefix(f"{label}: "), last_lines[-LAST_LINES:]
