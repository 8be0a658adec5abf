"""waitress: one process, sockets in one thread, handlers in a pool of threads.

    python -m velodrome.guest.stacks.waitress (what `waitress-serve` takes)

That is `waitress-serve` with its log at level error. Its own command line cannot set one, and at the level it
takes (info) it writes a line for every request that has to wait for a thread.
"""

from __future__ import annotations

import logging
import sys

from velodrome.guest.stack import Launch, Process, Server, Stack, one_per_thread


def command(launch: Launch) -> Process:
    """Return the command line; the options are those of `waitress-serve`."""
    return Process(
        (
            "-m",
            "velodrome.guest.stacks.waitress",
            "--host=%s" % launch.host,
            "--port=%d" % launch.port,
            "--threads=%s" % launch.text("threads"),
            "--backlog=%s" % launch.text("backlog"),
            # By default the 101st connection is not accepted, and `select` fails at file descriptor 1024.
            "--connection-limit=%s" % launch.text("connections"),
            "--asyncore-use-poll",
            launch.app,
        )
    )


stack = Stack(
    name="waitress",
    title="waitress",
    about="One process: a thread for all sockets, a pool for handlers; a request that waits holds one of it.",
    interface="wsgi",
    concurrency="threads",
    command=command,
    requires=("waitress==3.0.2",),
    knobs={"threads": 4, "backlog": 2048, "connections": 10000},
    slots=one_per_thread,
    python=(3, 9),
    stands_for="waitress",
    server=Server(
        "waitress",
        parts={
            "HTTP": ("waitress/parser", "waitress/receiver", "waitress/task"),
            "server": ("waitress",),
        },
        never_blocks=("waitress/",),
    ),
)


def main() -> None:
    """Run the program."""
    from waitress.runner import run

    logging.getLogger("waitress").setLevel(logging.ERROR)
    sys.exit(run(sys.argv))


if __name__ == "__main__":
    main()
