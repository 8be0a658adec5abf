"""What every gunicorn stack shares: the release and the command line."""

from __future__ import annotations

from velodrome.guest.stack import Launch, Process

REQUIRES = ("gunicorn==27.0.1",)
OLDEST_PYTHON = (3, 10)
# Without a configuration that is named, gunicorn reads ./gunicorn.conf.py: a user's own would race in the place of the
# settings that are shown (threads=8 makes a gthread of sync). Read before the command line, which wins.
NO_FILE = {"GUNICORN_CMD_ARGS": "--config=python:velodrome.guest.stacks._no_settings"}


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
            # A worker late to say it lives is killed. An overloaded one is late, and overload is tested.
            "--timeout=120",
            "--graceful-timeout=2",
            # By default longer than a load may leave a connection idle; gunicorn's own 2 s suit a proxy in front.
            "--keep-alive=%s" % launch.knobs.get("keepalive", 75),
            # Since 25.1 a socket file would be left in the home folder of whoever runs it.
            *(() if launch.older("gunicorn", 25, 1) else ("--no-control-socket",)),
            "--log-level=warning",
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
