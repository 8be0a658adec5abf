"""Workers: fork processes that serve one listening socket and end with them; event loops by name.

    listener = listen(host, port, backlog)
    with_workers(4, lambda: serve(listener))

For servers that bring no process manager of their own. A worker that dies is not replaced: under test
a quiet restart would hide the fault, so the others are ended and the exit status is 1.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from argparse import ArgumentParser
from importlib import import_module
from typing import Any, Awaitable, Callable, Coroutine, List, Set

LOOPS = ("asyncio", "uvloop")
"""The event loops that `new_loop` and `run` know."""
UVLOOP = "uvloop==0.23.0"
UVLOOP_WHERE_IT_RUNS = UVLOOP + "; python_version >= '3.10'"
"""For stacks of which it is one loop of two: they serve on older interpreters without it."""

STOPS = (signal.SIGTERM, signal.SIGINT)


def arguments(program: str) -> ArgumentParser:
    """Return a parser for what `command` and `main` of a stack tell each other: --app, --host, --port, …"""
    parser = ArgumentParser(prog="python -m " + program)
    parser.add_argument("--app", required=True, metavar="MODULE:ATTRIBUTE")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--backlog", type=int, default=2048)
    parser.add_argument("--workers", type=int, default=1)
    return parser


def load(app: str) -> Any:
    """Return what `module:attribute` names."""
    module, _, attribute = app.partition(":")
    return getattr(import_module(module), attribute)


def listen(host: str, port: int, backlog: int) -> socket.socket:
    """Return a listening, non-blocking socket that workers may share."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only where the socket says that it is TCP, as its own listeners do. Left on,
    # a second small write waits for the client's delayed acknowledgement: 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(backlog)
    listener.setblocking(False)
    return listener


def new_loop(name: str) -> asyncio.AbstractEventLoop:
    """Return an event loop: `asyncio`, the standard one, or `uvloop`."""
    if name == "asyncio":
        return asyncio.new_event_loop()
    import uvloop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def run(main: Coroutine[Any, Any, None], loop: str) -> None:
    """Run a coroutine to its end on a new loop of that name, as `asyncio.run` does on the standard one."""
    chosen = new_loop(loop)
    asyncio.set_event_loop(chosen)
    try:
        chosen.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(chosen)
        for task in left:
            task.cancel()
        chosen.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        chosen.run_until_complete(chosen.shutdown_asyncgens())
        asyncio.set_event_loop(None)
        chosen.close()


def with_workers(count: int, work: Callable[[], None]) -> None:
    """Run `work` in `count` forked processes until a stop signal; with one, run it in this process."""
    if count == 1:
        work()
        return
    # Held back until there is a handler and all workers are there to get it; no signal is lost between.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    workers = [_fork(work) for _ in range(count)]
    stopping: List[int] = []

    def stop(signum: int, frame: Any) -> None:
        stopping.append(signum)
        _end(workers)

    for signum in STOPS:
        signal.signal(signum, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    failed = False
    while workers:
        pid, status = os.wait()
        workers.remove(pid)
        # A worker that gets the signal to stop before it has a handler dies of the signal, as it should.
        failed = failed or status not in (0, signal.SIGTERM)
        if not stopping:
            sys.stderr.write("worker %d ended (wait status %d); ending the others\n" % (pid, status))
            stopping.append(0)
            _end(workers)
    sys.exit(0 if stopping[0] and not failed else 1)


def _fork(work: Callable[[], None]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        work()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        # Not sys.exit: the frames above belong to the parent's life.
        sys.stderr.flush()
        os._exit(status)


def _end(workers: List[int]) -> None:
    for pid in workers:
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            continue


_keepers: Set["asyncio.Task[None]"] = set()
"""A loop holds its tasks weakly."""


def at_loop_end(close: Callable[[], Awaitable[Any]]) -> None:
    """Await `close()` when the running loop ends, whoever runs it.

    No server has the same hook for that, but all end by cancelling what still runs on the loop: a task that waits for
    nothing else closes then.
    """

    async def keep() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await close()

    task = asyncio.get_running_loop().create_task(keep())
    _keepers.add(task)
    task.add_done_callback(_keepers.discard)
