"""Under which conditions apps are raced and searched, as a caller writes them."""

from typing import Any

from velodrome.api.spans import seconds_of
from velodrome.model.errors import UsageError
from velodrome.model.load import Limits, Link
from velodrome.plan import link_text
from velodrome.track.comparing import Terms


def limits_of(cpus: int | None, memory: str) -> Limits:
    """Return the limits of a server; `memory` is such as `"512MB"`. Raises UsageError."""
    if cpus is not None and cpus < 1:
        raise UsageError(f"cpus={cpus}: at least 1 is needed")
    try:
        return Limits.of(cpus, memory)
    except ValueError as error:
        raise UsageError(f"memory: {error}") from error


def link_of(link: str) -> Link | None:
    """Return the network between, told as `rtt=40ms,loss=1%`; None: it was not given. Raises UsageError."""
    try:
        return link_text.read(link) if link else None
    except ValueError as error:
        raise UsageError(f"link: {error}") from error


def terms_of(
    limits: Limits,
    *,
    connections: int,
    rate: float | None,
    duration: float | str,
    link: str = "",
    **more: Any,
) -> Terms:
    """Return the terms of a race; `more` are fields of `Terms`. Raises UsageError for what makes no sense."""
    return Terms(connections, rate, limits, seconds=seconds_of(duration), link=link_of(link), **more)
