"""Robyn: a framework whose server is Rust (actix), which calls Python on an event loop.

python -m velodrome.guest.stacks.robyn --app MODULE:ATTRIBUTE --host HOST --port PORT --processes N --workers N
"""

from __future__ import annotations

import signal
from argparse import ArgumentParser

from velodrome.guest.interfaces.robyn import ROBYN
from velodrome.guest.stack import Launch, Process, Server, Stack, Written
from velodrome.guest.workers import load

PROGRAM = "velodrome.guest.stacks.robyn"
SERVER = Server(
    PROGRAM,
    # With one process it does not heed SIGTERM.
    stop_signal=int(signal.SIGINT),
    keeps_idle_s=lambda knobs: float(knobs["keepalive"]),
    parts={"server": ("robyn/processpool",), "framework": ("robyn",)},
)


def command(launch: Launch) -> Process:
    """Return the command line; `processes`, `workers` (threads of Rust's) and the log are Robyn's own options."""
    return Process(
        (
            "-m",
            PROGRAM,
            "--app=%s" % launch.app,
            "--host=%s" % launch.host,
            "--port=%d" % launch.port,
            "--processes=%s" % launch.text("workers"),
            "--workers=%s" % launch.text("threads"),
            "--keepalive=%s" % launch.text("keepalive"),
            "--log-level=WARN",
            "--disable-openapi",
        ),
        stop_signal=SERVER.stop_signal,
    )


def script(launch: Launch, app: Written) -> str:
    """Return a program that serves an app so; Robyn reads how many processes from its command line."""
    own = [
        "--processes=%s" % launch.text("workers"),
        "--workers=%s" % launch.text("threads"),
        "--log-level=WARN",
    ]
    lines = ["import sys", "", "sys.argv += %r" % own, app.imports, ""]
    return "\n".join(
        [
            *lines,
            '%s.start(host="%s", port=%d, keep_alive_timeout=%s)'
            % (app.expression, launch.host, launch.port, launch.text("keepalive")),
        ]
    )


stack = Stack(
    name="robyn",
    title="Robyn",
    about="HTTP in Rust threads, handlers on an event loop in C; while one awaits the others run.",
    interface="robyn",
    concurrency="tasks",
    command=command,
    requires=(ROBYN,),
    knobs={"workers": 1, "threads": 1, "keepalive": 75},
    python=(3, 10),
    script=script,
    server=SERVER,
)


def main() -> None:
    """Run the program."""
    parser = ArgumentParser(prog="python -m " + PROGRAM)
    parser.add_argument("--app", required=True, metavar="MODULE:ATTRIBUTE")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--keepalive", type=int, default=75)
    options, _ = parser.parse_known_args()  # the others are Robyn's, which reads them itself
    app = load(options.app)
    # If the port is taken, robyn asks on the terminal for another.
    app.start(options.host, options.port, _check_port=False, keep_alive_timeout=options.keepalive)


if __name__ == "__main__":
    main()
