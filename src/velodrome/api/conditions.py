"""Under which conditions apps are raced and searched, as a caller writes them."""

from collections.abc import Sequence
from typing import Any

from velodrome.api.spans import seconds_of
from velodrome.model.errors import UsageError
from velodrome.model.limits import Limits
from velodrome.track import comparing
from velodrome.track.comparing import Terms


def limits_of(cpus: int | None, memory: str) -> Limits:
    """Return the limits of a server; `memory` is such as `"512MB"`. Raises UsageError."""
    if cpus is not None and cpus < 1:
        raise UsageError(f"cpus={cpus}: at least 1 is needed")
    try:
        return Limits.of(cpus, memory)
    except ValueError as error:
        raise UsageError(f"memory: {error}") from error


def terms_of(
    limits: Limits,
    *,
    connections: int,
    rate: float | None,
    duration: float | str,
    stacks: Sequence[str],
    **more: Any,
) -> Terms:
    """Return the terms of a race; `more` are fields of `Terms`. Raises UsageError for what makes no sense."""
    seconds = seconds_of(duration)
    if seconds < comparing.LEAST_S:
        raise UsageError(f"duration={duration!r}: {comparing.LEAST_S:g} s at least are needed")
    if rate is not None and not rate > 0:
        raise UsageError(f"rate={rate:g} is not a rate; give requests a second above 0")
    for name, number in (("connections", connections), ("blocks", more.get("blocks", 1))):
        if number < 1:
            raise UsageError(f"{name}={number}: at least 1 is needed")
    return Terms(connections, rate, limits, seconds=seconds, stacks=tuple(stacks), **more)
