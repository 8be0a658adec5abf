"""asyncio's streams with `multiprocessing`: one listening socket handed to several processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import socket
import threading
from typing import Any

from velodrome.guest.raw.process import arguments, command, sigterm_held_back, sigterm_let_through
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks._streams import let_go, life_line, serve
from velodrome.guest.workers import listen, load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.asyncio_shared_socket", launch)


stack = Stack(
    name="asyncio-shared-socket",
    title="asyncio · streams · shared socket",
    about="`workers` processes of `multiprocessing`, each with its own loop on one shared listening socket; "
    "the parent only waits for them; whichever wakes first takes a connection and keeps it (keep-alive)",
    interface="socket_asyncio",
    concurrency="tasks",
    command=_command,
    knobs={"backlog": 1000, "workers": 4},
    python=(3, 10),  # the oldest that the interface's client runs on
)


def work(app: str, listener: socket.socket, backlog: int, life: int) -> None:
    """Serve in a child till SIGTERM or the parent's end."""
    let_go()
    sigterm_let_through()
    asyncio.run(serve(load(app), listener, backlog, life))


def main() -> None:
    """Start the workers; on SIGTERM end them, wait for them and leave."""
    options = arguments("backlog", "workers")
    ended = threading.Event()

    def end(number: int, frame: Any) -> None:
        ended.set()

    with sigterm_held_back():
        signal.signal(signal.SIGTERM, end)
        listener = listen(options.host, options.port, options.backlog)
        life = life_line()
        # Forked, so that no helper process of multiprocessing (resource tracker, fork server) can outlive us.
        context = multiprocessing.get_context("fork")
        workers = [
            context.Process(target=work, args=(options.app, listener, options.backlog, life))
            for _ in range(options.workers)
        ]
        for worker in workers:
            worker.start()
    ended.wait()
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
