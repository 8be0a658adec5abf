"""Treatments: one thing each that is otherwise in a process than its app has it, named in an environment variable.

    VELODROME_INJECTED={"folder": "/tmp/x", "give": {"anyio-tokens": 400, "heartbeat": {"late_s": 0.01}}}

Those of the interpreter itself are here, and others in a module for each kind of thing that they change. What is given
with a name is a number, a place and the like; a word where there are several ways (`logging`), and some word or `true`
where there is nothing to choose.

A treatment that takes hold is noted in the folder (`took-<pid>.jsonl`), so that one which changed nothing because it
never met what it changes is not taken for one that does not help. The host creates `<folder>/warm` when the app has
answered its first requests.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Mapping

from velodrome.guest.injected import (
    allocations,
    around_app,
    background,
    bounds,
    building,
    calls,
    gathering,
    hops,
    libraries,
    life,
    locks,
    own_ends,
    pauses,
    sockets,
    statements,
    third_parties,
    work,
)
from velodrome.guest.injected.giving import WARM, Giving, Treatments
from velodrome.guest.injected.importing import Missing

VARIABLE = "VELODROME_INJECTED"


def apply(environment: Mapping[str, str]) -> None:
    """Give this process what the variable names. Raises KeyError for a treatment that there is none of."""
    text = environment.get(VARIABLE)
    if not text:
        return
    document = json.loads(text)
    giving = Giving(document["folder"])
    for name, value in document["give"].items():
        TREATMENTS[name](giving, value)
    giving.finder.install()


def _failing_imports(giving: Giving, _: bool) -> None:
    """Have modules that were looked for some times and are not there no longer be looked for."""
    sys.meta_path.append(Missing(lambda: giving.took("failing-imports")))


def _collector(giving: Giving, _: str) -> None:
    """Have the garbage collector freeze what is there when the app is warm."""
    import gc

    def act() -> None:
        gc.collect()
        gc.freeze()
        giving.took("collector")

    giving.when_warm(act)


def _switch_interval(giving: Giving, seconds: float) -> None:
    """Have a thread that computes give up the interpreter's lock after so long, where another one wants it."""
    sys.setswitchinterval(seconds)
    giving.took("switch-interval")


def _heartbeat(giving: Giving, how: Mapping[str, float]) -> None:
    """Watch the event loops of the process from a thread beside them."""
    from velodrome.guest.injected import heartbeat

    heart = heartbeat.Heart(giving.folder, how["late_s"], os.path.join(giving.folder, WARM))
    giving.finder.after("asyncio.base_events", lambda module: heart.watch(module.BaseEventLoop))
    giving.finder.after("uvloop", lambda module: heart.watch(module.Loop))
    giving.finder.after("gevent.hub", lambda module: heart.watch_gevent(module.Hub))
    giving.finder.after("trio._core._run", heart.watch_trio)
    giving.finder.after("tornado.ioloop", heart.watch_tornado)
    giving.finder.after("socket", heart.watch_connects)
    giving.finder.after("uvloop", lambda module: heart.watch_connects_of(module.Loop))
    statements.follow(giving.finder, heart.timer_of)
    pauses.follow(giving.finder, heart.timer_of)
    own_ends.follow(giving.finder, heart.ends)
    hops.follow(giving.finder, heart.hopped)
    for kind in building.KINDS:
        building.follow(giving.finder, kind, heart.watch_builder(building.MARK % kind))
    os.register_at_fork(before=heart.forks, after_in_child=heart.forked)


def _collections(giving: Giving, _: bool) -> None:
    """Note how long collections of garbage take."""
    from velodrome.guest.injected import heartbeat

    heartbeat.Collections(giving.folder)


TREATMENTS: Treatments = {
    "failing-imports": _failing_imports,
    "collector": _collector,
    "switch-interval": _switch_interval,
    "heartbeat": _heartbeat,
    "collections": _collections,
    **allocations.TREATMENTS,
    **around_app.TREATMENTS,
    **background.TREATMENTS,
    **bounds.TREATMENTS,
    **building.TREATMENTS,
    **calls.TREATMENTS,
    **gathering.TREATMENTS,
    **hops.TREATMENTS,
    **libraries.TREATMENTS,
    **life.TREATMENTS,
    **locks.TREATMENTS,
    **pauses.TREATMENTS,
    **own_ends.TREATMENTS,
    **sockets.TREATMENTS,
    **statements.TREATMENTS,
    **third_parties.TREATMENTS,
    **work.TREATMENTS,
}
