"""What every uvicorn stack shares: the releases, the command line, and what is known of the server."""

from __future__ import annotations

from typing import Mapping, Tuple

from velodrome.guest.stack import LOGGING, SUPERVISION, KnobValue, Launch, Process, Server

REQUIRES = ("uvicorn==0.54.0", "uvloop==0.23.0", "httptools==0.9.0")
OLDEST_PYTHON = (3, 10)
NEEDS = {"uvicorn": (0, 11)}  # has no --backlog before


def keeps_idle_s(knobs: Mapping[str, KnobValue]) -> float:
    """Return how many seconds a connection may be idle; uvicorn's own are 5, for a proxy beside it."""
    return float(knobs.get("keepalive", 75))


def supervises(knobs: Mapping[str, KnobValue]) -> bool:
    """Return whether a process of uvicorn looks after its workers: one alone has none, and ends at SIGHUP."""
    return int(knobs.get("workers", 1)) > 1


SERVER = Server(
    "uvicorn",
    race_only={"--log-level": LOGGING, "--timeout-graceful-shutdown": SUPERVISION},
    access_log="on by default: 45 µs of CPU a request, 64 % on top of a bare one (70 µs)",
    replace_worker=lambda requests, memory_bytes: ("--limit-max-requests=%d" % requests,),
    keeps_idle_s=keeps_idle_s,
    reloads=supervises,
    replaces=supervises,
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
            # Longer than a load, or a proxy (nginx: 60 s), leaves a connection idle.
            "--timeout-keep-alive=%d" % keeps_idle_s(launch.knobs),
            *(() if launch.older("uvicorn", 0, 22) else ("--timeout-graceful-shutdown=5",)),
            # The parent kills a worker that is 5 s late to say it lives, and an overloaded worker is late.
            *(("--timeout-worker-healthcheck=60",) if _is_watched(launch) else ()),
            *_limit(launch),
            "--no-access-log",
            "--log-level=warning",
            launch.app,
        )
    )


def _limit(launch: Launch) -> Tuple[str, ...]:
    """Return the option for the connections above which it answers 503, where it is set: idle connections count as
    well."""
    limit = int(launch.knobs.get("limit_concurrency", 0))
    return ("--limit-concurrency=%d" % limit,) if limit else ()


def _is_watched(launch: Launch) -> bool:
    """Return whether a parent looks after the workers."""
    return launch.number("workers") > 1 and not launch.older("uvicorn", 0, 37)


def fast(launch: Launch) -> Process:
    """Return the command line with httptools on the loop chosen by the knob `loop`."""
    return serve(launch, launch.text("loop"), "httptools")
