"""What every uvicorn stack shares: the releases, the command line, and what is known of the server."""

from __future__ import annotations

from velodrome.guest.stack import Launch, Process, Server

REQUIRES = ("uvicorn==0.54.0", "uvloop==0.23.0", "httptools==0.9.0")
OLDEST_PYTHON = (3, 10)
NEEDS = {"uvicorn": (0, 11)}  # has no --backlog before

SERVER = Server(
    "uvicorn",
    race_only=(
        "--log-level",
        "--no-access-log",
        "--timeout-graceful-shutdown",
        "--timeout-worker-healthcheck",
    ),
    access_log="on by default: 45 µs of CPU a request, 64 % more than hello takes (70 µs)",
    replace_worker=lambda requests, memory_bytes: ("--limit-max-requests=%d" % requests,),
    parts={"HTTP": ("uvicorn/protocols",), "server": ("uvicorn",)},
)


def serve(launch: Launch, loop: str, parser: str) -> Process:
    """Return the command line of uvicorn on a `loop` (uvloop, asyncio) with a `parser` (httptools, h11)."""
    return Process(
        (
            "-m",
            "uvicorn",
            "--host=%s" % launch.host,
            "--port=%d" % launch.port,
            "--workers=%s" % launch.text("workers"),
            "--backlog=%s" % launch.text("backlog"),
            "--loop=%s" % loop,
            "--http=%s" % parser,
            "--interface=asgi3",
            # By default longer than a load may leave a connection idle; uvicorn's own 5 s suit a proxy in front.
            "--timeout-keep-alive=%s" % launch.knobs.get("keepalive", 75),
            *(() if launch.older("uvicorn", 0, 22) else ("--timeout-graceful-shutdown=5",)),
            # The parent replaces a worker that is late to say it lives; an overloaded one is late.
            *(() if launch.older("uvicorn", 0, 37) else ("--timeout-worker-healthcheck=60",)),
            "--no-access-log",
            "--log-level=warning",
            launch.app,
        )
    )


def fast(launch: Launch) -> Process:
    """Return the command line with httptools on the loop chosen by the knob `loop`."""
    return serve(launch, launch.text("loop"), "httptools")
