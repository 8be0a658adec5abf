"""As published: the teaching server over asyncio's streams, which decodes the request and closes each connection."""

from __future__ import annotations

import asyncio

from velodrome.guest.interfaces.published import CANNOT
from velodrome.guest.raw.process import arguments, command, end_on_sigterm
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks.published_asyncio import serve
from velodrome.guest.workers import load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.published_teaching", launch)


stack = Stack(
    name="published-teaching",
    title="as published · teaching",
    about="as published-asyncio, but it decodes what it read, splits the request line, and answers with CRLF "
    "and Connection: close",
    interface="published_teaching",
    concurrency="tasks",
    command=_command,
    knobs={"backlog": 100},
    keeps_alive=False,
    cannot=CANNOT,
    python=(3, 7),
)


def main() -> None:
    """Serve till SIGTERM."""
    options = arguments("backlog")
    end_on_sigterm()
    asyncio.run(serve(load(options.app), options.host, options.port, options.backlog))


if __name__ == "__main__":
    main()
