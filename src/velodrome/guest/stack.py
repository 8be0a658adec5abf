"""A stack: a server under one concurrency model, described; nothing is started here.

A stack is one file in `guest/stacks/` (or a third party's, see `guest/catalog.py`) with a module-level
`stack = Stack(...)`. Its `command` turns a `Launch` (how it shall run) into a `Process` (what to execute).
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, field, replace
from typing import Callable, Collection, Dict, Mapping, Optional, Tuple, Union

KnobValue = Union[int, str]


@dataclass(frozen=True)
class Launch:
    """How a stack shall run: where to listen, what to serve, how its knobs stand."""

    host: str
    port: int
    app: str
    """`module:attribute` of what is served, in the idiom of the stack's interface."""
    knobs: Mapping[str, KnobValue]
    """Every knob of the stack, defaults filled in."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Versions that are installed, by normalized name, where a user's own win over the stack's; else empty."""

    def older(self, package: str, *version: int) -> bool:
        """Return whether a package is known to be of a version before `version`."""
        return before(self.packages, package, version)

    def number(self, knob: str) -> int:
        """Return a knob that is a count, such as `workers`."""
        return int(self.knobs[knob])

    def text(self, knob: str) -> str:
        """Return a knob as it is written on a command line."""
        return str(self.knobs[knob])


def before(packages: Mapping[str, str], package: str, version: Tuple[int, ...]) -> bool:
    """Return whether a package is known to be of a version before `version`; `packages` by normalized name."""
    found = packages.get(package)
    return found is not None and _numbers(found) < version


def _numbers(version: str) -> Tuple[int, ...]:
    """Return the numbers that a version begins with: `23.0.0rc1` as (23, 0, 0)."""
    found = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


@dataclass(frozen=True)
class Process:
    """What to execute: arguments after the interpreter (they begin with `-m`), and additions to the environment."""

    argv: Tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    laboratory: Mapping[str, str] = field(default_factory=dict)
    """Additions that only a race needs: what is pasted to deploy it has none of them."""
    stop_signal: int = int(signal.SIGTERM)


def unbounded(knobs: Mapping[str, KnobValue]) -> Optional[int]:
    """No limit on requests served at once worth naming (tasks, greenlets, a thread for each connection)."""
    return None


def one_per_worker(knobs: Mapping[str, KnobValue]) -> Optional[int]:
    """Each worker process serves one request at a time."""
    return int(knobs["workers"])


def one_per_thread(knobs: Mapping[str, KnobValue]) -> Optional[int]:
    """Each thread of each worker process serves one request at a time."""
    return int(knobs.get("workers", 1)) * int(knobs["threads"])


def exactly_one(knobs: Mapping[str, KnobValue]) -> Optional[int]:
    """One request at a time in all."""
    return 1


SUPERVISION = "how long requests in flight get when it is stopped: a race waits seconds, a deployment longer"
LOGGING = "what its own log tells of starts and stops: a race wants warnings only"
"""Why an option of a race may be missing where its server is deployed; there is no third reason."""


def unknown(knobs: Mapping[str, KnobValue]) -> Optional[float]:
    """How long idle connections are kept is not known."""
    return None


def never(knobs: Mapping[str, KnobValue]) -> bool:
    """Not, however the knobs stand."""
    return False


@dataclass(frozen=True)
class Written:
    """How an app is named in the source of a program."""

    imports: str
    """Lines: `from shop import create_app`."""
    expression: str
    """`create_app()`."""


@dataclass(frozen=True)
class Configuration:
    """A file that says what a command line does, and how the server is started with it."""

    name: str
    text: str
    command: Tuple[str, ...]
    """The words of the shorter command line: `python -m gunicorn --config=gunicorn.conf.py`."""


@dataclass(frozen=True)
class Server:
    """The program that a stack starts, and what is known of it beyond the command line of a race.

    What is pasted to deploy an app, and how a profile is read, follow from it. Stacks of one server share one.
    """

    module: str
    """As after `python -m`, e.g. `gunicorn`."""
    race_only: Collection[str] = ()
    """Options that a race sets and a deployment does not; best mapped to the reason, `SUPERVISION` or `LOGGING`.
    Everything else on the command line of a race is pasted as it was measured."""
    race_only_switches: Tuple[str, ...] = ()
    """Of `race_only`, those without a value; those that begin with `--no-` need not be named again."""
    access_log: str = ""
    """Whether it writes a line for each request unless it is set, and what that costs; empty: that is not known. It is
    off in a race, and so in what is pasted.

    Measured: CPU of the server a request of `hello`, lines to a file, Python 3.11, medians of 5 starts in turns.
    """
    replace_worker: Optional[Callable[[int, int], Tuple[str, ...]]] = None
    """Returns the options that replace a worker after so many requests, or at so many bytes; None: it cannot."""
    configuration: Optional[Callable[[Tuple[str, ...]], Configuration]] = None
    """Returns the file for a command line (`python -m …`), whose last word is the app; None: it reads none."""
    notifies: bool = False
    """Whether it tells systemd when it is ready: sends `READY=1` to `$NOTIFY_SOCKET` (sd_notify(3))."""
    stop_signal: int = int(signal.SIGTERM)
    """The signal on which it ends in order, in a race and where it is deployed."""
    supervises: bool = True
    """Whether its first process ends its workers in order; else all of them have to be sent the signal."""
    keeps_idle_s: Callable[[Mapping[str, KnobValue]], Optional[float]] = unknown
    """Returns how many seconds an idle connection is kept, by the knobs; None: that is not known. A proxy in front has
    to end its connections before that (RFC 9112, 9.3: a request that meets the end of its connection is lost)."""
    reloads: Callable[[Mapping[str, KnobValue]], bool] = never
    """Returns whether SIGHUP to its first process replaces all workers, by the knobs; where it does not, it may end."""
    replaces: Callable[[Mapping[str, KnobValue]], bool] = never
    """Returns whether it starts another worker in the place of one that ends, by the knobs; where not, it may end."""
    most_idle: Optional[int] = None
    """How many idle connections it keeps, where that is fewer than a proxy may hold."""
    reads: Tuple[str, str] = ("", "")
    """A file in the folder of an app and an environment variable whose settings it reads by itself, if any."""
    parts: Mapping[str, Tuple[str, ...]] = field(default_factory=dict)
    """Beginnings of the paths of its code, by the part of a server they are (`model/profile.py`)."""
    never_blocks: Tuple[str, ...] = ()
    """Beginnings of the paths of its code whose sockets never block: a read there works and does not wait."""
    loops_in_c: Tuple[str, ...] = ()
    """Calls, as in the line of source, in which it waits or works in C, and of which nobody outside can tell which."""

    @property
    def has_value(self) -> Mapping[str, bool]:
        """The options that only a race needs, and whether each has a value."""
        return {
            option: not option.startswith("--no-") and option not in self.race_only_switches
            for option in (*self.race_only, *self.race_only_switches)
        }


@dataclass(frozen=True)
class Variant:
    """A stack under a name of its own that sets knobs of another for good: `aiohttp-uvloop` is `aiohttp` on uvloop."""

    name: str
    title: str
    about: str
    knobs: Mapping[str, KnobValue]
    requires: Tuple[str, ...] = ()
    """In place of the other's requirements of the same packages."""


@dataclass(frozen=True)
class Stack:
    """Who serves: a server, its concurrency model and event loop, its knobs, and what it needs installed."""

    name: str
    """As typed, e.g. `gunicorn-gevent`; the file is `gunicorn_gevent.py`."""
    title: str
    """As read, e.g. `gunicorn · gevent`."""
    about: str
    """One sentence: what it is, when a request waits who runs."""
    interface: str
    """Name of the file in `guest/interfaces/` whose handlers it calls."""
    concurrency: str
    """`sync`, `threads`, `processes`, `greenlets`, `generators`, `tasks` or `events`: what is there once per
    request in flight (`events`: an entry in a loop's table; while one request waits, so do all)."""
    command: Callable[[Launch], Process]
    requires: Tuple[str, ...] = ()
    """Pinned requirements of the server itself; the interface adds its own."""
    knobs: Mapping[str, KnobValue] = field(default_factory=dict)
    """The knobs it honours, with their defaults: `workers`, `threads`, `loop`, `backlog`, …"""
    choices: Mapping[str, Tuple[str, ...]] = field(default_factory=dict)
    """The values a textual knob may take."""
    slots: Callable[[Mapping[str, KnobValue]], Optional[int]] = unbounded
    """How many requests it can serve at once; None where connections or CPU are the limit."""
    keeps_alive: bool = True
    """Whether a connection serves one request after another; if not, each answer ends its connection."""
    cannot: Mapping[str, str] = field(default_factory=dict)
    """Kinds of step it cannot serve, each with the reason."""
    python: Tuple[int, int] = (3, 8)
    """The oldest Python it runs on."""
    systems: Tuple[str, ...] = ("linux", "darwin")
    """`sys.platform` values it runs on."""
    cpu_features: Tuple[str, ...] = ()
    """What its compiled packages use of an x86-64 CPU without asking whether it is there; names of /proc/cpuinfo."""
    needs: Mapping[str, Tuple[int, ...]] = field(default_factory=dict)
    """The oldest versions it can be had with, where a user's packages win over what it pins: package to version."""
    stands_for: str = ""
    """Where its program is a file of velodrome's: the module that takes the same command line, if there is one."""
    script: Optional[Callable[[Launch, Written], str]] = None
    """Where its program is one and no command line serves an app so: the lines of a file that does."""
    server: Optional[Server] = None
    """The program it starts; None where nothing is known of it but the command line."""
    usual: bool = False
    """Whether it serves an app of its interface where nobody says which stack does."""

    variants: Tuple[Variant, ...] = ()
    """Other names of this stack."""
    variant_of: str = ""
    """The name of the stack of which this is a variant, with some knobs set."""

    def every(self) -> Tuple[Stack, ...]:
        """Return this stack and its variants; these do not have the knobs that are set for good."""
        return (self, *map(self._varied, self.variants))

    def _varied(self, of: Variant) -> Stack:
        def command(launch: Launch) -> Process:
            return self.command(replace(launch, knobs={**launch.knobs, **of.knobs}))

        def script(launch: Launch, app: Written) -> str:
            if self.script is None:
                raise TypeError("stack %r has no script" % self.name)
            return self.script(replace(launch, knobs={**launch.knobs, **of.knobs}), app)

        own = {line.partition("==")[0] for line in of.requires}
        others = (line for line in self.requires if line.partition("==")[0] not in own)
        return replace(
            self,
            name=of.name,
            title=of.title,
            about=of.about,
            command=command,
            requires=(*others, *of.requires),
            script=script if self.script is not None else None,
            knobs={knob: value for knob, value in self.knobs.items() if knob not in of.knobs},
            choices={knob: values for knob, values in self.choices.items() if knob not in of.knobs},
            usual=False,
            variants=(),
            variant_of=self.name,
        )

    def least(self, knob: str) -> int:
        """Return the smallest number that a knob takes: 1, or 0 where this is its default, and means that it is off."""
        return min(1, int(self.knobs[knob]))

    def settings(self, chosen: Mapping[str, KnobValue]) -> Dict[str, KnobValue]:
        """Return all knobs with `chosen` over the defaults. Raises KeyError for a knob it does not have."""
        for knob in chosen:
            if knob not in self.knobs:
                raise KeyError(knob)
        return {**self.knobs, **chosen}
