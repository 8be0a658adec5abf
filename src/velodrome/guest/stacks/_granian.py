"""What every granian stack shares: the release, the command line, and what is known of the server."""

from __future__ import annotations

from velodrome.guest.stack import LOGGING, SUPERVISION, Launch, Process, Server

REQUIRES = ("granian==2.8.7", "uvloop==0.23.0")
OLDEST_PYTHON = (3, 10)
NEEDS = {"granian": (1, 4)}  # 1.2 has neither --backpressure nor --no-access-log

MIB = 2**20
CONNECTIONS = 1024
"""That a worker holds at once; granian's own default for one worker, which divides it by their number."""
IDLE_S = 60
"""It ends a connection that is idle as long as it waits for a head; it allows no more, and its own default is 30 s."""
SERVER = Server(
    "granian",
    race_only={"--log-level": LOGGING, "--workers-kill-timeout": SUPERVISION},
    access_log="off, on with --access-log: 67 µs of CPU a request, 75 % on top of a bare one (wsgi, 90 µs)",
    # It counts no requests: it looks at the memory of each worker.
    replace_worker=lambda requests, memory_bytes: ("--workers-max-rss=%d" % max(memory_bytes // MIB, 1),),
    keeps_idle_s=lambda knobs: IDLE_S,
    reloads=lambda knobs: True,
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
            # As many connections as one worker holds.
            "--backpressure=%s" % launch.text("connections"),
            "--http=1",
            *(() if launch.older("granian", 2) else ("--http1-header-read-timeout=%d" % (1000 * IDLE_S),)),
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
