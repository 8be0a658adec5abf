"""Something that velodrome keeps in its cache, which it can make again: an environment, a copy, compiled bytecode."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Kept:
    """A thing in the cache: what it is, how large, and when a run last used it."""

    kind: str
    """`envs`, `overlays`, …: the name of its folder in the cache."""
    name: str
    path: str
    what: str
    """For whom it was made, such as `gunicorn-gevent, Python 3.11.7`; empty: that is not known."""
    last_used: float
    """Unix time, s."""
    in_use: bool
    """By a velodrome that runs now."""
    size_bytes: int = 0
    """On the disk, each file once however many names it has."""
    freed_bytes: int = 0
    """Of these, what its removal frees: the rest has names elsewhere too, most of it in uv's own cache."""


@dataclass(frozen=True)
class Stock:
    """Several of them together: all that is kept, or what was removed."""

    every: tuple[Kept, ...]
    size_bytes: int
    """Less than the sum of theirs: they share files."""
    freed_bytes: int


@dataclass(frozen=True)
class Damage:
    """Something kept that is not as it was made."""

    kept: Kept
    differences: tuple[str, ...]
    """As `lib/…/waitress/server.py has 1210 bytes instead of 2311`."""
