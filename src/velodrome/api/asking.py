"""`velodrome.requests`: what is asked of an app, from an access log, an OpenAPI document or a file of requests."""

import warnings
from collections.abc import Sequence
from pathlib import Path

from velodrome.model.app import Request
from velodrome.plan.asked import asking
from velodrome.plan.asked.asking import Asking
from velodrome.plan.asked.methods import SAFE
from velodrome.run.faults import refusals
from velodrome.track.trusting import Trust

Asks = Sequence[str | Request]
"""Lines such as `"GET /cart?id=7"`, or requests; the same twice is asked twice as often."""


@refusals()
def requests(
    *lines: str,
    file: str | Path | None = None,
    access_log: str | Path | None = None,
    openapi: str | Path | None = None,
    methods: Sequence[str] = SAFE,
    trust: bool = False,
) -> Asking:
    """Return what one of these says is asked: `.requests` for whoever asks, `.told` on what is left out, and of a log
    `.peak_rps`, requests in its busiest second.

    `methods` are those taken from a log or a document; `trust` allows the file to name files that are not beside it.
    Raises UsageError.
    """
    see = trusting(trust).see
    return asking.of(lines, _path(file), _path(access_log), _path(openapi), methods, see=see)


def trusting(given: bool) -> Trust:
    """Return what decides on what a file names; nobody is asked."""
    return Trust(given=given, ask=None, say=lambda sentence: warnings.warn(sentence, stacklevel=2))


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)


def mix_of(asked: Asks) -> tuple[Request, ...]:
    """Return requests, each once, with its weight. Raises RequestLineError."""
    lines = [one for one in asked if isinstance(one, str)]
    given = tuple(one for one in asked if isinstance(one, Request))
    return (*asking.of(lines).requests, *given) if lines or not given else given
