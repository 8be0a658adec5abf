"""asyncio's streams, forked: the parent listens, forks, and all processes serve the one socket."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import traceback
from typing import Any, List, NoReturn

from velodrome.guest.raw.process import (
    arguments,
    command,
    end_on_sigterm,
    sigterm_held_back,
    sigterm_let_through,
)
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks._streams import let_go, life_line, serve
from velodrome.guest.workers import listen, load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.asyncio_prefork", launch)


stack = Stack(
    name="asyncio-prefork",
    title="asyncio · streams · prefork",
    about="`workers` processes in all, each with its own loop: the parent listens, forks the others and "
    "serves too; whichever wakes first takes a connection and keeps it (keep-alive); a dead child stays dead",
    interface="socket_asyncio",
    concurrency="tasks",
    command=_command,
    knobs={"backlog": 1000, "workers": 3},
    python=(3, 10),  # the oldest that the interface's client runs on
)


def fork_children(converse: Any, listener: socket.socket, backlog: int, count: int) -> List[int]:
    """Fork `count` children that serve, and return their ids."""
    life = life_line()
    children = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            serve_in_child(converse, listener, backlog, life)
        children.append(pid)
    os.close(life)
    return children


def serve_in_child(converse: Any, listener: socket.socket, backlog: int, life: int) -> NoReturn:
    """Serve till SIGTERM or the parent's end, and never return into what the parent was doing."""
    status = 1
    try:
        let_go()
        sigterm_let_through()
        asyncio.run(serve(converse, listener, backlog, life))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def end_children(children: List[int]) -> None:
    """End the children and wait for them."""
    for pid in children:
        os.kill(pid, signal.SIGTERM)  # not collected yet, so the id is still theirs
    for pid in children:
        os.waitpid(pid, 0)


def main() -> None:
    """Serve till SIGTERM, then end the children and wait for them."""
    options = arguments("backlog", "workers")
    converse = load(options.app)
    children: List[int] = []
    # Children may serve before this process has a loop, and the loop its own handler.
    end_on_sigterm(lambda: end_children(children))
    try:
        with sigterm_held_back():
            listener = listen(options.host, options.port, options.backlog)
            children += fork_children(converse, listener, options.backlog, options.workers - 1)
        asyncio.run(serve(converse, listener, options.backlog))
    finally:
        end_children(children)


if __name__ == "__main__":
    main()
