"""asyncio's streams on uvloop: a task for each connection, libuv underneath."""

from __future__ import annotations

from velodrome.guest.raw.process import arguments, command
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks._streams import serve
from velodrome.guest.workers import listen, load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.asyncio_uvloop", launch)


stack = Stack(
    name="asyncio-uvloop",
    title="asyncio · streams · uvloop",
    about="as asyncio-streams, with uvloop's loop and transports in place of asyncio's own",
    interface="socket_asyncio",
    concurrency="tasks",
    command=_command,
    requires=("uvloop==0.23.0",),
    knobs={"backlog": 1000},
    python=(3, 10),  # the oldest that the interface's client runs on
)


def main() -> None:
    """Serve till SIGTERM."""
    import uvloop

    told = arguments("backlog")
    uvloop.run(serve(load(told.app), listen(told.host, told.port, told.backlog), told.backlog))


if __name__ == "__main__":
    main()
