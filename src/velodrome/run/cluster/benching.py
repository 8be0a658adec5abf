"""The loads of a search on agents' hosts: each host makes one after the other, as its command asks for them.

    with hosts(address, security, needs) as found:
        found.begin(plan, study, lab, follower)
        found.prepare("a", demands)             # the host is held from now on, and its environments are there
        found.load("a", trial, ask, …)
        found.next(follower)                    # Loaded("a", results), Came("b"), Left("c", why)

Who measures what next is decided by whoever searches; a server stays up from one load to the next. One agent of each
host is used: a second one would wait for the first, and stands by in case that is lost.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from velodrome.model import results
from velodrome.model.measurement import Failed, Measurement
from velodrome.model.results import Result, adapter
from velodrome.model.study import Study
from velodrome.model.trial import Session, Trial
from velodrome.model.tuning import Ask
from velodrome.run.cluster import handing, talking
from velodrome.run.cluster.blocks import Needs
from velodrome.run.lab import Lab
from velodrome.run.racing.opening import Preparing

LOOK_S = 1.0


@dataclass(frozen=True)
class Loaded:
    """A host has done what it was given last."""

    host: str
    results: tuple[Result, ...]
    why: str
    """Why there was no server for it; empty: there was."""


@dataclass(frozen=True)
class Came:
    """A host is there."""

    host: str


@dataclass(frozen=True)
class Left:
    """A host was lost, and what it was given with it."""

    host: str
    why: str


class Hosts(handing.Hosts):
    """The agents of a coordinator as the hosts of a search."""

    given = "loads"

    def __init__(
        self, address: talking.Address, security: talking.Security, needs: Callable[[Lab, Study], Needs]
    ) -> None:
        """`needs` says what a search needs of a host."""
        super().__init__(address, security, needs)
        self._used: dict[str, handing.Host] = {}
        """By host, its agent that measures."""
        self._results: list[tuple[str, Result]] = []
        self._unserved: dict[str, str] = {}

    @property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        """Facts of each host that there is."""
        return {one.name: one.facts for one in self._hosts.values() if one.ready}

    def use(self, fits: Callable[[Mapping[str, Any]], bool] = lambda _: True) -> tuple[str, ...]:
        """Take one agent of each host that is there, fits by its facts and is not used yet; return these hosts."""
        new = []
        for one in self._hosts.values():
            if one.ready and one.name not in self._used and fits(one.facts):
                self._used[one.name] = one
                new.append(one.name)
        return tuple(new)

    def prepare(self, host: str, conditions: Sequence[str], arrivals: str) -> None:
        """Have a host make its environments, and hold its machine, however long it waits for that."""
        self._say(host, {"do": "prepare", "conditions": list(conditions), "arrivals": arrivals})

    def load(self, host: str, trial: Trial, ask: Ask, alone_ms: float, keys: Sequence[str]) -> None:
        """Have a host make a load of a trial's contestant; no trial gets one of `keys`.

        `alone_ms` is what an answer takes alone, where that is known; else 0.
        """
        self._say(
            host,
            {
                "do": "load",
                "trial": results.plain_trial(trial),
                "ask": adapter(Ask).dump_python(ask, mode="json"),
                "alone_ms": alone_ms,
                "keys": list(keys),
            },
        )

    def serve(self, host: str, session: Session) -> None:
        """Have a host run a server session."""
        self._say(host, {"do": "session", "trials": [results.plain_trial(one) for one in session.trials]})

    def rest(self, host: str) -> None:
        """Have a host stop its server."""
        self._say(host, {"do": "rest"})

    def _say(self, host: str, line: Mapping[str, Any]) -> None:
        self._loop.call_soon_threadsafe(self._used[host].given.append, json.dumps(line))

    def next(self, follower: Preparing) -> Loaded | Came | Left | None:
        """Return what happens next, and hand preparations on to the follower; None: nothing happened for a second."""
        kind, agent, event = self._event(time.monotonic() + LOOK_S)
        if agent is None or agent.gone:
            return None
        used = self._used.get(agent.name) is agent
        if kind == "entry" and used:
            entry = self._entry(agent, event, Path())
            assert isinstance(entry, Measurement | Failed)
            self._results.append((agent.name, entry))
        elif kind == "unserved":
            self._unserved[agent.name] = event["text"]
        elif kind == "whole" and used:
            return Loaded(agent.name, self._taken(agent.name), self._unserved.pop(agent.name, ""))
        elif kind == "ready" and self._odd(agent) is None:
            agent.ready = True
            if agent.name not in self._used:
                follower.preparing(f"{agent.name} is there")
                return Came(agent.name)
        elif kind in ("lost", "refused", "failed", "ready"):
            agent.unfit = kind != "lost"
            why = "its Python is another" if kind == "ready" else str(event)
            self._take_leave(agent, why, follower)
            if used:
                del self._used[agent.name]
                self._taken(agent.name)
                self._unserved.pop(agent.name, None)
                return Left(agent.name, why)
        elif kind in ("preparing", "warning"):
            follower.preparing(f"{agent.name}: {event['text']}")
        return None

    def _taken(self, host: str) -> tuple[Result, ...]:
        """Return what a host has measured since it was given its last load."""
        own = tuple(one for name, one in self._results if name == host)
        self._results = [(name, one) for name, one in self._results if name != host]
        return own


@contextmanager
def hosts(
    address: talking.Address, security: talking.Security, needs: Callable[[Lab, Study], Needs]
) -> Iterator[Hosts]:
    """Yield the agents of a coordinator as hosts of one search."""
    found = Hosts(address, security, needs)
    found.start()
    try:
        yield found
    finally:
        found.close()
