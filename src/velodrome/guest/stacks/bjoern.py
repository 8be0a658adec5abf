"""bjoern, a small server in C on libev: one thread accepts, parses, calls and answers.

python -m velodrome.guest.stacks.bjoern --app MODULE:ATTRIBUTE --port PORT [--workers N]

It is a library: what it serves, and in how many processes, a program says. Its wheels are those of bjoern-binary.
"""

from __future__ import annotations

import math
import socket

from velodrome.guest.stack import Launch, Process, Server, Stack, Written, one_per_worker
from velodrome.guest.workers import arguments, listen, load, with_workers

PROGRAM = "velodrome.guest.stacks.bjoern"
SERVER = Server(
    PROGRAM,
    access_log="none",
    supervises=False,  # the program that is pasted only forks
    keeps_idle_s=lambda knobs: math.inf,
    parts={"server": ("bjoern",)},
    loops_in_c=("_bjoern.server_run(",),
)


def command(launch: Launch) -> Process:
    """Return the command line: this file is the program."""
    return Process(
        (
            "-m",
            PROGRAM,
            "--app=%s" % launch.app,
            "--host=%s" % launch.host,
            "--port=%d" % launch.port,
            "--workers=%s" % launch.text("workers"),
            "--backlog=%s" % launch.text("backlog"),
        )
    )


def script(launch: Launch, app: Written) -> str:
    """Return a program that serves an app so."""
    more = launch.number("workers") - 1
    lines = ["import os", "", "import bjoern", app.imports, ""]
    lines += [
        'listener = bjoern.bind_and_listen("%s", %d, listen_backlog=%s)'
        % (launch.host, launch.port, launch.text("backlog"))
    ]
    if more:
        lines += ["for _ in range(%d):" % more, "    if not os.fork():", "        break"]
    return "\n".join([*(lines if more else lines[2:]), "bjoern.server_run(listener, %s)" % app.expression])


stack = Stack(
    name="bjoern",
    title="bjoern",
    about="One thread in C, or one for each forked worker: it accepts, parses, calls and answers; while a request "
    "waits, all wait.",
    interface="wsgi",
    concurrency="sync",
    command=command,
    requires=("bjoern-binary==3.2.2",),
    knobs={"workers": 1, "backlog": 2048},
    slots=one_per_worker,
    python=(3, 9),
    script=script,
    server=SERVER,
)


def serve(app: str, listener: socket.socket) -> None:
    """Serve till a signal ends the process."""
    import bjoern

    bjoern.server_run(listener, load(app))


def main() -> None:
    """Run the program."""
    options = arguments(PROGRAM).parse_args()
    listener = listen(options.host, options.port, options.backlog)
    with_workers(options.workers, lambda: serve(options.app, listener))


if __name__ == "__main__":
    main()
