"""asyncio's streams (`asyncio.start_server`): a task for each connection, one thread, one process."""

from __future__ import annotations

from velodrome.guest.raw.process import arguments, command
from velodrome.guest.stack import Launch, Process, Stack, Variant
from velodrome.guest.stacks._streams import serve
from velodrome.guest.workers import LOOPS, UVLOOP, UVLOOP_WHERE_IT_RUNS, listen, load, run


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.asyncio_streams", launch)


stack = Stack(
    name="asyncio-streams",
    title="asyncio · streams",
    about="one thread, a task for each connection, which it keeps (keep-alive); while one awaits, others run",
    interface="socket_asyncio",
    concurrency="tasks",
    command=_command,
    requires=(UVLOOP_WHERE_IT_RUNS,),
    knobs={"loop": "asyncio", "backlog": 1000},
    choices={"loop": LOOPS},
    python=(3, 10),  # the oldest that the interface's client runs on
    variants=(
        Variant(
            "asyncio-uvloop",
            "asyncio · streams · uvloop",
            "as asyncio-streams, with uvloop's loop and transports in place of asyncio's own",
            {"loop": "uvloop"},
            (UVLOOP,),
        ),
    ),
)


def main() -> None:
    """Serve till SIGTERM."""
    options = arguments("backlog", loops=LOOPS)
    run(
        serve(load(options.app), listen(options.host, options.port, options.backlog), options.backlog),
        options.loop,
    )


if __name__ == "__main__":
    main()
