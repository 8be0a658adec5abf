"""As published: one listening socket handed to processes of `multiprocessing`, each with a loop of its own on it."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
from typing import Any, List

from velodrome.guest.interfaces.published import CANNOT
from velodrome.guest.raw.process import (
    arguments,
    command,
    end_on_sigterm,
    sigterm_held_back,
    sigterm_let_through,
)
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks.published_asyncio import handler
from velodrome.guest.workers import listen, load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.published_shared_socket", launch)


stack = Stack(
    name="published-shared-socket",
    title="as published · asyncio · shared socket",
    about="as published-asyncio, in `workers` processes on one listening socket; `backlog` is what it is made "
    "with, and asyncio then sets its own 100",
    interface="published",
    concurrency="tasks",
    command=_command,
    knobs={"backlog": 1000, "workers": 4},
    keeps_alive=False,
    cannot=CANNOT,
    python=(3, 7),
)


async def serve(answer: Any, listener: socket.socket) -> None:
    """Serve for ever. `start_server` listens anew, with its own backlog, as it does when none is given."""
    server = await asyncio.start_server(handler(answer), sock=listener)
    async with server:
        await server.serve_forever()


def work(app: str, listener: socket.socket) -> None:
    """Serve in a child."""
    sigterm_let_through()
    asyncio.run(serve(load(app), listener))


def main() -> None:
    """Start the workers and wait for them; SIGTERM ends them too: the publication leaves that to Ctrl-C."""
    options = arguments("backlog", "workers")
    # Forked, so that no helper process of multiprocessing can outlive us.
    context = multiprocessing.get_context("fork")
    workers: List[multiprocessing.process.BaseProcess] = []

    def end_workers() -> None:
        for worker in workers:
            if worker.pid is not None:
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)

    end_on_sigterm(end_workers)
    with sigterm_held_back():
        listener = listen(options.host, options.port, options.backlog)
        workers += [
            context.Process(target=work, args=(options.app, listener)) for _ in range(options.workers)
        ]
        for worker in workers:
            worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
