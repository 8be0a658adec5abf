"""Treatments of a server's life: how its processes begin, share, are replaced, and what the system allows them.

Each is noted when it takes hold, as in `treating.py`, which names them.
"""

from __future__ import annotations

import os
import random
import sys
import weakref
from typing import Any

from velodrome.guest.injected.giving import Giving, Treatments


def _max_requests(giving: Giving, count: int) -> None:
    """Have gunicorn, and uvicorn where it has several workers, replace a worker after so many requests."""

    def of_gunicorn(module: Any) -> None:
        before = module.Worker.__init__

        def init(self: Any, *args: Any, **named: Any) -> None:
            before(self, *args, **named)
            self.max_requests = count
            giving.took("max-requests")

        module.Worker.__init__ = init

    def of_uvicorn(module: Any) -> None:
        before = module.Config.load

        def load(self: Any) -> None:
            before(self)
            if self.workers > 1:  # nobody would replace the only one
                self.limit_max_requests = count
                giving.took("max-requests")

        module.Config.load = load

    giving.finder.after("gunicorn.workers.base", of_gunicorn)
    giving.finder.after("uvicorn.config", of_uvicorn)


def _jitter(giving: Giving, _: bool) -> None:
    """Have each worker that is replaced after so many requests live up to twice as long, by a number that is drawn."""

    def of_gunicorn(module: Any) -> None:
        before = module.Worker.__init__

        def init(self: Any, *args: Any, **named: Any) -> None:
            before(self, *args, **named)
            if self.max_requests < sys.maxsize:
                # Each worker is forked from one state of the app's own generator, which stays as it is.
                self.max_requests += random.SystemRandom().randint(0, self.max_requests)
                giving.took("jitter")

        module.Worker.__init__ = init

    def of_uvicorn(module: Any) -> None:
        before = module.Config.load

        def load(self: Any) -> None:
            before(self)
            if self.limit_max_requests:
                self.limit_max_requests += random.SystemRandom().randint(0, self.limit_max_requests)
                giving.took("jitter")

        module.Config.load = load

    giving.finder.after("gunicorn.workers.base", of_gunicorn)
    giving.finder.after("uvicorn.config", of_uvicorn)


def _preload(giving: Giving, _: str) -> None:
    """Have gunicorn import the app in each worker, and not before it forks them."""

    def patch(module: Any) -> None:
        before = module.Arbiter.setup

        def setup(self: Any, app: Any) -> None:
            if app.cfg.preload_app:
                app.cfg.set("preload_app", False)
                giving.took("preload")
            before(self, app)

        module.Arbiter.setup = setup

    giving.finder.after("gunicorn.arbiter", patch)


def _own_epoll(giving: Giving, _: bool) -> None:
    """Have a loop of asyncio that was made before a fork wait on an epoll of its own in the child."""
    loops: Any = weakref.WeakSet()

    def patch(module: Any) -> None:
        before = module.BaseSelectorEventLoop.__init__

        def init(self: Any, *args: Any, **named: Any) -> None:
            before(self, *args, **named)
            loops.add(self)

        module.BaseSelectorEventLoop.__init__ = init

    def forked() -> None:
        for loop in list(loops):
            if loop.is_closed():
                continue
            shared = loop._selector
            own = type(shared)()
            # What wakes the loop from other threads is a pair of sockets that parent and child would share too.
            for end in (loop._ssock, loop._csock):
                shared._fd_to_key.pop(end.fileno(), None)
                end.close()
            for key in list(shared._fd_to_key.values()):
                own.register(key.fileobj, key.events, key.data)
            shared.close()  # the child's share in it: the parent goes on with it
            loop._selector = own
            loop._internal_fds -= 1
            loop._make_self_pipe()
            giving.took("own-epoll")

    giving.finder.after("asyncio.selector_events", patch)
    os.register_at_fork(after_in_child=forked)


def _open_files(giving: Giving, count: int) -> None:
    """Have the process open so many files where the system lets it, whatever the app set: also when it is warm."""
    try:
        import resource
    except ImportError:  # Windows
        return

    def act() -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
            giving.took("open-files")

    act()
    giving.when_warm(act)


def _cpus(giving: Giving, count: int) -> None:
    """Have all threads of a server run on so many CPUs together: the first of those it may use."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) > count:
        os.sched_setaffinity(0, allowed[:count])  # of the first thread, before there are others
        giving.took("cpus")


TREATMENTS: Treatments = {
    "max-requests": _max_requests,
    "jitter": _jitter,
    "preload": _preload,
    "own-epoll": _own_epoll,
    "open-files": _open_files,
    "cpus": _cpus,
}
