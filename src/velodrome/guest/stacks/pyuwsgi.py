"""uWSGI, a server in C, as the package pyuwsgi brings it: its HTTP router in front of its workers.

    python -m velodrome.guest.stacks.pyuwsgi (what `uwsgi` takes)

The package is a library with uWSGI's whole `main` in it and has no module to run, so this file is the program.
"""

from __future__ import annotations

import sys
from typing import Tuple

from velodrome.guest.stack import Launch, Process, Server, Stack, Written, one_per_thread

PROGRAM = "velodrome.guest.stacks.pyuwsgi"
SERVER = Server(
    PROGRAM,
    keeps_idle_s=lambda knobs: float(knobs["keepalive"]),
    notifies=True,
    replaces=lambda knobs: True,
    access_log="on by default: 12 µs of CPU a request, 6 % on top of a bare one (195 µs)",
    parts={"server": ("uwsgidecorators",)},
)


def options(launch: Launch) -> Tuple[str, ...]:
    """Return what is set of uWSGI where it is deployed, but for the app."""
    return (
        # The router keeps connections; a socket without a router (--http-socket) ends each with its answer.
        "--http=%s:%d" % (launch.host, launch.port),
        "--http-keepalive=%s" % launch.text("keepalive"),
        "--http-auto-chunked",
        "--master",
        "--processes=%s" % launch.text("workers"),
        "--threads=%s" % launch.text("threads"),
        "--listen=%s" % launch.text("backlog"),
        "--single-interpreter",
        "--need-app",
        "--die-on-term",
        # No finalizing of Python in a worker that ends: with threads, on a busy machine, one in ten never came back
        # from it, and the master waits a minute. `atexit` of the app is not called; `uwsgi.atexit` is.
        "--skip-atexit-teardown",
        "--disable-logging",
    )


def command(launch: Launch) -> Process:
    """Return the command line: this file is the program."""
    app = launch.app
    if app.startswith("velodrome.guest."):
        # uWSGI looks into the module's dictionary, where an app that is made on first use is not yet.
        app = app.replace(":", ":make_") + "()"
    return Process(("-m", PROGRAM, *options(launch), "--module=" + app))


def script(launch: Launch, app: Written) -> str:
    """Return a program that serves an app so."""
    lines = ["import pyuwsgi", app.imports, "", "application = %s" % app.expression, ""]
    given = "".join("            %r,\n" % option for option in options(launch))
    return "\n".join(
        [
            *lines,
            'if __name__ == "__main__":',
            "    pyuwsgi.run(\n        [\n%s            %r,\n        ]\n    )"
            % (given, "--module=serve:application"),
        ]
    )


stack = Stack(
    name="pyuwsgi",
    title="uWSGI",
    about="A server in C: a router process for all connections, forked workers with a pool of threads each; a "
    "request that waits holds one thread.",
    interface="wsgi",
    concurrency="threads",
    command=command,
    requires=("pyuwsgi==2.0.30.post1",),
    knobs={"workers": 1, "threads": 4, "backlog": 2048, "keepalive": 75},
    slots=one_per_thread,
    script=script,
    server=SERVER,
)


def main() -> None:
    """Run the program."""
    import pyuwsgi

    pyuwsgi.run(sys.argv[1:])


if __name__ == "__main__":
    main()
