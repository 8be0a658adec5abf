"""hypercorn, a server in Python for HTTP/1, 2 and 3; here it speaks HTTP/1.1."""

from velodrome.guest.stack import LOGGING, SUPERVISION, Launch, Process, Server, Stack
from velodrome.guest.stacks._gunicorn import RECYCLED, keeps_idle_s, recycle, replace_worker

SERVER = Server(
    "hypercorn",
    race_only={"--log-level": LOGGING, "--graceful-timeout": SUPERVISION},
    access_log="off, on with --access-logfile: 58 µs of CPU a request, 23 % on top of a bare one (252 µs)",
    replace_worker=replace_worker,
    keeps_idle_s=keeps_idle_s,
    parts={"HTTP": ("hypercorn/protocol",), "server": ("hypercorn",)},
)


def command(launch: Launch) -> Process:
    """Return the command line."""
    return serve_on(launch.text("loop"), launch)


def serve_on(loop: str, launch: Launch) -> Process:
    """Return the command line on an event loop: `uvloop`, `asyncio` or `trio`."""
    module, _, attribute = launch.app.partition(":")
    if module.startswith("velodrome.guest."):
        # hypercorn looks into `vars(module)`, where an app that is made on first use is not yet.
        attribute = "make_%s()" % attribute
    return Process(
        (
            "-m",
            "hypercorn",
            "--bind=%s:%d" % (launch.host, launch.port),
            "--workers=%s" % launch.text("workers"),
            "--backlog=%s" % launch.text("backlog"),
            "--worker-class=%s" % loop,
            # Longer than a load, or a proxy (nginx: 60 s), leaves a connection idle; hypercorn's own are 5 s.
            "--keep-alive=%d" % keeps_idle_s(launch.knobs),
            "--graceful-timeout=5",
            "--log-level=warning",
            *recycle(launch),  # its options are gunicorn's
            "asgi:%s:%s" % (module, attribute),
        )
    )


stack = Stack(
    name="hypercorn",
    title="hypercorn · uvloop",
    about="An event loop in C with a parser in Python; ends each connection after 1,000 requests.",
    interface="asgi",
    concurrency="tasks",
    command=command,
    requires=("hypercorn==0.18.0", "h11==0.16.0", "uvloop==0.23.0"),
    knobs={"workers": 1, "loop": "uvloop", "backlog": 2048, "keepalive": 75, **RECYCLED},
    choices={"loop": ("uvloop", "asyncio")},
    python=(3, 10),
    server=SERVER,
)
