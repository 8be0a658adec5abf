"""asyncio's streams (`asyncio.start_server`): a task for each connection, one thread, one process."""

from __future__ import annotations

import asyncio

from velodrome.guest.raw.process import arguments, command
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks._streams import serve
from velodrome.guest.workers import listen, load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.asyncio_streams", launch)


stack = Stack(
    name="asyncio-streams",
    title="asyncio · streams",
    about="one thread, a task for each connection, which it keeps (keep-alive); while one awaits, others run",
    interface="socket_asyncio",
    concurrency="tasks",
    command=_command,
    knobs={"backlog": 1000},
    python=(3, 10),  # the oldest that the interface's client runs on
)


def main() -> None:
    """Serve till SIGTERM."""
    told = arguments("backlog")
    asyncio.run(serve(load(told.app), listen(told.host, told.port, told.backlog), told.backlog))


if __name__ == "__main__":
    main()
