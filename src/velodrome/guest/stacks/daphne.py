"""daphne, the server of Django's Channels: HTTP and WebSockets by Twisted, on the standard event loop."""

from velodrome.guest.stack import Launch, Process, Server, Stack

SERVER = Server(
    "daphne",
    access_log="on by default: 70 µs of CPU a request, 22 % on top of a bare one (315 µs)",
    keeps_idle_s=lambda knobs: 60.0,  # Twisted's, for a whole request
    parts={
        "HTTP": ("twisted/web", "autobahn/websocket", "daphne/http_protocol", "daphne/ws_protocol"),
        "event loop": ("twisted/internet",),
        "server": ("daphne", "twisted", "autobahn"),
    },
    never_blocks=("twisted/",),
)


def command(launch: Launch) -> Process:
    """Return the command line; it can be set no number of processes."""
    return Process(
        (
            "-m",
            "daphne",
            # As a listening address of Twisted's, because --port has a listen queue of 50.
            "--endpoint=tcp:interface=%s:port=%d:backlog=%s"
            % (launch.host, launch.port, launch.text("backlog")),
            # Its access log is on from 1 on.
            "--verbosity=0",
            launch.app,
        )
    )


stack = Stack(
    name="daphne",
    title="daphne",
    about="Twisted's HTTP in Python on the standard event loop, one process, no lifespan; awaiting frees it.",
    interface="asgi",
    concurrency="tasks",
    command=command,
    requires=("daphne==4.2.3", "twisted==26.10.0"),
    knobs={"backlog": 2048},
    python=(3, 10),
    server=SERVER,
)
