"""What every gunicorn stack shares: the release, the command line, and what is known of the server."""

from __future__ import annotations

import json
from typing import Mapping, Tuple

from velodrome.guest.stack import LOGGING, SUPERVISION, Configuration, KnobValue, Launch, Process, Server

REQUIRES = ("gunicorn==27.0.1",)
OLDEST_PYTHON = (3, 10)
# Without a configuration that is named, gunicorn reads ./gunicorn.conf.py: a user's own would race in the place of the
# settings that are shown (threads=8 makes a gthread of sync). Read before the command line, which wins.
NO_FILE = {"GUNICORN_CMD_ARGS": "--config=python:velodrome.guest.stacks._no_settings"}

CONFIGURED = {
    "keep_alive": "keepalive",
    "log_level": "loglevel",
    "no_control_socket": "control_socket_disable",
    "preload": "preload_app",
}
"""Settings whose name in a file is not that of their option."""


def configuration(words: Tuple[str, ...]) -> Configuration:
    """Return `gunicorn.conf.py` for a command line."""
    started = (*words[:3], "--config=gunicorn.conf.py")
    lines = ["# " + " ".join(started)]
    for word in words[3:-1]:
        option, equals, value = word.partition("=")
        name = option.lstrip("-").replace("-", "_")
        shown = "True" if not equals else value if value.isdecimal() else json.dumps(value)
        lines.append("%s = %s" % (CONFIGURED.get(name, name), shown))
    text = "\n".join([*lines, "wsgi_app = %s" % json.dumps(words[-1]), ""])
    return Configuration("gunicorn.conf.py", text, started)


def replace_worker(requests: int, memory_bytes: int) -> Tuple[str, ...]:
    """Return the options that replace a worker: after so many requests, not all workers at once."""
    spread = requests // 10
    jitter = ("--max-requests-jitter=%d" % spread,) if spread else ()
    return ("--max-requests=%d" % requests, *jitter)


RECYCLED = {"max_requests": 0, "max_requests_jitter": 0}
"""Settings after how many requests a worker is replaced, and at random how many more; 0: none ever is."""


def recycle(launch: Launch) -> Tuple[str, ...]:
    """Return the options of these settings, where they are set."""
    return tuple(
        "--%s=%d" % (name.replace("_", "-"), int(launch.knobs[name]))
        for name in RECYCLED
        if launch.knobs.get(name)
    )


CONNECTIONS = 1000
"""That a worker holds at once: gunicorn's own default."""


def keeps_idle_s(knobs: Mapping[str, KnobValue]) -> float:
    """Return how many seconds a connection may be idle; gunicorn's own are 2, for a proxy beside it."""
    return float(knobs.get("keepalive", 75))


SERVER = Server(
    "gunicorn",
    race_only={"--log-level": LOGGING, "--graceful-timeout": SUPERVISION},
    access_log="off, on with --access-logfile: 85 µs of CPU a request, 34 % on top of a bare one (gthread, 248 µs)",
    replace_worker=replace_worker,
    configuration=configuration,
    notifies=True,
    keeps_idle_s=keeps_idle_s,
    reloads=lambda knobs: True,
    replaces=lambda knobs: True,
    reads=("gunicorn.conf.py", "GUNICORN_CMD_ARGS"),
    parts={"HTTP": ("gunicorn/http", "gunicorn/asgi"), "server": ("gunicorn",)},
)


def serve(launch: Launch, worker_class: str, *more: str) -> Process:
    """Return the command line of gunicorn with one of its worker classes."""
    return Process(
        (
            "-m",
            "gunicorn",
            "--bind=%s:%d" % (launch.host, launch.port),
            "--workers=%s" % launch.text("workers"),
            "--backlog=%s" % launch.text("backlog"),
            "--worker-class=%s" % worker_class,
            "--graceful-timeout=2",
            # Longer than a load, or a proxy (nginx: 60 s), leaves a connection idle.
            "--keep-alive=%d" % keeps_idle_s(launch.knobs),
            # Since 25.1 a socket file would be left in the home folder of whoever runs it.
            *(() if launch.older("gunicorn", 25, 1) else ("--no-control-socket",)),
            "--log-level=warning",
            # The app is imported before workers are forked, which then share its memory.
            *(("--preload",) if launch.knobs.get("preload") else ()),
            *recycle(launch),
            *more,
            launch.app,
        ),
        laboratory=NO_FILE,
    )


def sync(launch: Launch) -> Process:
    """Return the command line of the sync worker; it closes after each answer all the same."""
    return serve(launch, "sync")


def gthread(launch: Launch) -> Process:
    """Return the command line of the threaded worker."""
    return serve(
        launch,
        "gthread",
        "--threads=%s" % launch.text("threads"),
        "--worker-connections=%s" % launch.text("connections"),
    )
