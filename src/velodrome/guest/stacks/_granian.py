"""What every granian stack shares: the release, the command line, and what is known of the server."""

from __future__ import annotations

from velodrome.guest.stack import Launch, Process, Server

REQUIRES = ("granian==2.8.7", "uvloop==0.23.0")
OLDEST_PYTHON = (3, 10)
NEEDS = {"granian": (1, 4)}  # 1.2 has neither --backpressure nor --no-access-log

MIB = 2**20
SERVER = Server(
    "granian",
    race_only=(
        "--log-level",
        "--no-access-log",
        "--workers-kill-timeout",
        "--http1-header-read-timeout",
        "--no-ws",
    ),
    access_log="off, on with --access-log: 67 µs of CPU a request, 75 % more than hello takes (wsgi, 90 µs)",
    # It counts no requests: it looks at the memory of each worker.
    replace_worker=lambda requests, memory_bytes: ("--workers-max-rss=%d" % max(memory_bytes // MIB, 1),),
    parts={"server": ("granian",)},
)


def serve(launch: Launch, interface: str, *more: str) -> Process:
    """Return the command line of granian with one of its interfaces."""
    return Process(
        (
            "-m",
            "granian",
            "--interface=%s" % interface,
            "--host=%s" % launch.host,
            "--port=%d" % launch.port,
            "--workers=%s" % launch.text("workers"),
            "--backlog=%s" % launch.text("backlog"),
            # As many connections as one worker holds; by default backlog / workers.
            "--backpressure=%s" % launch.text("connections"),
            "--http=1",
            # It also ends a connection that is idle so long. No longer one is allowed; the default is 30 s.
            *(() if launch.older("granian", 2) else ("--http1-header-read-timeout=60000",)),
            "--no-ws",
            *(() if launch.older("granian", 1, 7) else ("--workers-kill-timeout=5",)),
            "--no-access-log",
            "--log-level=warning",
            *more,
            launch.app,
        )
    )


def runtime_threads(launch: Launch) -> str:
    """Return the option for the threads that Rust serves from; before 2 it was called otherwise."""
    name = "threads" if launch.older("granian", 2) else "runtime-threads"
    return "--%s=%s" % (name, launch.text("threads"))
