"""As published: the asyncio server is created, then `os.fork()`; the children inherit its loop, and all serve."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import List

from velodrome.guest.interfaces.published import CANNOT
from velodrome.guest.raw.process import arguments, command, end_on_sigterm, sigterm_held_back
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks.published_asyncio import handler
from velodrome.guest.workers import load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.published_prefork", launch)


stack = Stack(
    name="published-prefork",
    title="as published · asyncio · prefork",
    about="as published-asyncio, forked once it listens: `workers` processes in all, the parent too, over one "
    "socket and (as the loop was there before the fork) over one epoll, so that each is woken for all",
    interface="published",
    concurrency="tasks",
    command=_command,
    knobs={"backlog": 100, "workers": 3},
    keeps_alive=False,
    cannot=CANNOT,
    python=(3, 7),
)


def main() -> None:
    """Serve till SIGTERM, which ends the children too: the publication leaves that to Ctrl-C."""
    options = arguments("backlog", "workers")
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    listening = asyncio.start_server(
        handler(load(options.app)), options.host, options.port, backlog=options.backlog
    )
    children: List[int] = []

    def end_children() -> None:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    end_on_sigterm(end_children)
    with sigterm_held_back():
        loop.run_until_complete(listening)
        for _ in range(options.workers - 1):
            pid = os.fork()
            if pid == 0:
                break
            children.append(pid)
    loop.run_forever()


if __name__ == "__main__":
    main()
