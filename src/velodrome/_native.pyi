"""The whole boundary to the engine; only `run/` imports it. Schemas are described in `docs/results.md`."""

from collections.abc import Callable
from typing import Any, final

__all__ = [
    "DEBUG",
    "VERSION",
    "Link",
    "Upstream",
    "fill",
    "from_json",
    "load",
    "schedule",
    "sum_of_histograms",
    "to_json",
]

VERSION: str
DEBUG: bool
"""Built without optimisation: what it measures is flagged `debug-build`."""

def to_json(plain: object) -> str:
    """Return None, truth, numbers, text, and lists and dictionaries of such as JSON, as all here take and give it.

    `json` does the same and takes longer to import than a load to begin. Raises TypeError for anything else.
    """

def from_json(text: str) -> Any:
    """Return what JSON says. Raises ValueError for what is none."""

def schedule(spec: str, count: int) -> list[int]:
    """Return when the first requests of a load, or of a part of one, are due: nanoseconds from its beginning.

    Empty for a closed loop. Raises ValueError where the spec is wrong.
    """

def fill(text: bytes, seed: int, number: int) -> bytes:
    """Return a template (`docs/load.md`) filled in for the request of this number, as loads of this seed fill it.

    Raises ValueError for a placeholder that stands for nothing.
    """

def sum_of_histograms(parts: list[tuple[str, int | None]]) -> tuple[str, str] | None:
    """Return the sum of histograms (V2, deflated, base64), each with its exact largest in nanoseconds if that is known.

    With it comes JSON: its percentiles in milliseconds. None: there are no histograms. Raises ValueError for what is no
    histogram, or has other bounds.
    """

def load(
    spec: str, body: bytes, expect_body: bytes | None, on_event: Callable[[str], bool | int] | None
) -> str:
    """Run a whole load and return its result, a `velodrome/load/1` document; blocks, with the GIL released.

    `on_event` gets one JSON line per event on the calling thread, at least four times a second: `preparing` while a
    name server or the server's description is waited for, then ticks. Returning False ends the load early, and what
    was measured is returned. A part of a load says `ready` every few milliseconds, until a number is returned: the
    nanoseconds of CLOCK_MONOTONIC at which all parts begin. What it raises, KeyboardInterrupt included, ends the load
    too and is raised here.

    Raises:
        ValueError: the spec is wrong; one sentence says what.
        PermissionError: the target is not this machine and not in `allow_target`.
        InterruptedError: `on_event` ended it before its first request, when nothing was measured.
        OSError: the system does not allow this load, e.g. too few file descriptors; says which limit and the cure.
    """

@final
class Upstream:
    """The simulated third party. Making one binds and starts its threads; `spec` is JSON, every field optional.

    Raises:
        ValueError: the spec is wrong; all problems in one sentence.
        OSError: the address is taken or not ours, or the system has no more threads or file descriptors.
    """

    def __new__(cls, spec: str) -> Upstream: ...
    @property
    def port(self) -> int:
        """Where it listens."""

    def facts(self) -> str:
        """What it did since it started (and under `since`: since last asked), as JSON; lateness in milliseconds."""

    def stop(self) -> str:
        """Close everything and return the last facts; again and again the same."""

@final
class Link:
    """The relay between two networks (Linux only). Making one starts its thread; ends when deleted.

    `spec` is JSON: `there` and `back` (`delay_ns`, `jitter_ns`, `rate_mbit`, `queue_packets`, `loss`) and `seed`.
    `client` and `server` are descriptors of TUN devices, opened non-blocking with IFF_NO_PI and IFF_VNET_HDR; they
    belong to the link from then on.

    Raises:
        ValueError: the spec is wrong; one sentence says what.
        OSError: a descriptor is none of a TUN device (it is left open then), or the system has no more threads.
    """

    def __new__(cls, spec: str, client: int, server: int) -> Link: ...
    def facts(self) -> str:
        """What happened since this was last asked, as JSON. Raises OSError when the relay has ended."""
