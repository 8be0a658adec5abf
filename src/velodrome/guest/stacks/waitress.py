"""waitress: one process, sockets in one thread, handlers in a pool of threads.

    python -m velodrome.guest.stacks.waitress (what `waitress-serve` takes)

That is `waitress-serve` with its log at level error. Its own command line cannot set a level, and at the level it
takes (info) it writes a line for every request that has to wait for a thread. What is pasted sets the same level.
"""

from __future__ import annotations

import logging
import sys

from velodrome.guest.stack import Launch, Process, Server, Stack, Written, one_per_thread

PROGRAM = "velodrome.guest.stacks.waitress"
SERVER = Server(
    PROGRAM,
    access_log="none",
    keeps_idle_s=lambda knobs: 120.0,  # its channel_timeout
    parts={
        "HTTP": ("waitress/parser", "waitress/receiver", "waitress/task"),
        "server": ("waitress",),
    },
    never_blocks=("waitress/",),
)


def command(launch: Launch) -> Process:
    """Return the command line; the options are those of `waitress-serve`."""
    return Process(
        (
            "-m",
            PROGRAM,
            "--host=%s" % launch.host,
            "--port=%d" % launch.port,
            "--threads=%s" % launch.text("threads"),
            "--backlog=%s" % launch.text("backlog"),
            # By default the 101st connection is not accepted, which a proxy and a browser or two reach, and `select`
            # fails at file descriptor 1024.
            "--connection-limit=%s" % launch.text("connections"),
            "--asyncore-use-poll",
            launch.app,
        )
    )


def script(launch: Launch, app: Written) -> str:
    """Return a program that serves an app so."""
    settings = "threads=%s, backlog=%s, connection_limit=%s, asyncore_use_poll=True" % (
        launch.text("threads"),
        launch.text("backlog"),
        launch.text("connections"),
    )
    return "\n".join(
        [
            "import logging",
            "",
            "from waitress import serve",
            app.imports,
            "",
            "# Else it writes a line for every request that has to wait for a thread.",
            'logging.getLogger("waitress").setLevel(logging.ERROR)',
            'serve(%s, host="%s", port=%d, %s)' % (app.expression, launch.host, launch.port, settings),
        ]
    )


stack = Stack(
    name="waitress",
    title="waitress",
    about="One process: a thread for all sockets, a pool for handlers; a request that waits holds one of it.",
    interface="wsgi",
    concurrency="threads",
    command=command,
    requires=("waitress==3.0.2",),
    knobs={"threads": 4, "backlog": 2048, "connections": 1000},
    slots=one_per_thread,
    python=(3, 9),
    script=script,
    server=SERVER,
)


def main() -> None:
    """Run the program."""
    from waitress.runner import run

    logging.getLogger("waitress").setLevel(logging.ERROR)
    sys.exit(run(sys.argv))


if __name__ == "__main__":
    main()
