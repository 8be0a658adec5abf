"""How one foreign load generator is spoken to: what it can carry, its words for a load, its report read back.

A file of this folder that drives such a tool holds its dialect and nothing else:

    driver = partial(ForeignDriver, Dialect(tool, unfit, words, read, …))
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from velodrome.model import secrets
from velodrome.model.load import Load, Open, Schedule
from velodrome.run.calls.described_call import DescribedCall
from velodrome.run.drivers.driver import Target
from velodrome.run.drivers.foreign import Finished
from velodrome.run.drivers.told import Told
from velodrome.run.drivers.tool import Tool

BODY = "body"
"""Name of the file that a request's body is in."""


@dataclass(frozen=True)
class Unfit:
    """Which field of a load a tool cannot carry, and what it can."""

    field: str
    value: object
    can: str


@dataclass(frozen=True)
class Words:
    """Arguments, without the program itself, and the files they name."""

    arguments: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """What is not quite as asked, as sentences."""


def no_hint(finished: Finished) -> str:
    """Know no cure."""
    return ""


@dataclass(frozen=True)
class Dialect:
    """One tool. `words` takes a load to be measured or, with `requests` None, a warm-up."""

    tool: Tool
    unfit: Callable[[Load, Target], Unfit | None]
    words: Callable[[Load, Target], Words]
    read: Callable[[Finished, Load], Told]
    """Raises ValueError, KeyError or TypeError for anything that is not its report."""
    latency_is: str
    checks: Callable[[Target], str]
    """What it looks at to call an answer right."""
    threads: Callable[[Load, int], int]
    """How many of so many CPUs it can use."""
    hint: Callable[[Finished], str] = no_hint
    """Given a run that failed, what to do about it, or nothing."""
    hangs: str = ""
    """When it does not end by itself, as a sentence."""
    whole_seconds: bool = False
    """Whether it knows no parts of a second."""
    blind: Callable[[Target], bool] = lambda target: False
    """Whether it cannot tell a failure from a right answer."""


def over_http(target: Target) -> Unfit | None:
    """Refuse what is no plain HTTP."""
    scheme = urlsplit(target.url).scheme
    return None if scheme == "http" else Unfit("protocol", scheme, "it speaks plain HTTP")


def open_to_all(arguments: Sequence[str]) -> Unfit | None:
    """Refuse a command line with a secret in it: every program of this machine can read it while the tool runs."""
    if all(secrets.mask(one) == one for one in arguments):
        return None
    can = (
        "it takes headers and URLs on its command line, which every program of this machine can read; velodrome "
        "is given them by a pipe, and wrk by a file"
    )
    return Unfit("secret", secrets.MARK, can)


def one_request(target: Target) -> Unfit | None:
    """Refuse several requests, and what is filled in, encoded or looked at as only velodrome does."""
    if isinstance(target.call, DescribedCall):
        return Unfit("call", target.call.path, "it makes the call of velodrome's own recipes only")
    if not target.mix:
        return None
    several = f"{len(target.mix)} requests" if len(target.mix) > 1 else "a template, or a text to look for"
    return Unfit("mix", several, "it sends one request, the same each time; velodrome sends more")


def steady(load: Load) -> Unfit | None:
    """Refuse a rate that changes."""
    if isinstance(load.pace, Schedule):
        return Unfit("rate", load.pace.ends, "it knows one rate or none; velodrome's may change")
    return None


def closed_only(load: Load) -> Unfit | None:
    """Refuse an open loop."""
    if isinstance(load.pace, Open):
        return Unfit("rate", load.pace.rate, "it knows the closed loop alone; velodrome and oha know rates")
    return None


def one_stream(load: Load) -> Unfit | None:
    """Refuse several requests at once on a connection."""
    if load.streams > 1:
        return Unfit(
            "streams", load.streams, "it sends one request at a time on a connection; h2load sends more"
        )
    return None


def constant_arrivals(load: Load) -> Unfit | None:
    """Refuse random arrivals."""
    if isinstance(load.pace, Open) and load.pace.arrivals != "constant":
        return Unfit("arrivals", load.pace.arrivals, "its arrivals are constant; velodrome's may be random")
    return None


def in_whole_seconds(load: Load) -> tuple[str, ...]:
    """Say that a span was rounded up, of a tool that knows no parts of a second."""
    if load.requests is not None or load.duration_s == int(load.duration_s):
        return ()
    return (
        f"It loads for whole seconds: {math.ceil(load.duration_s)} s where {load.duration_s:g} s were asked.",
    )


def first(*found: Unfit | None) -> Unfit | None:
    """Return the first thing that does not fit."""
    return next((one for one in found if one is not None), None)
