"""cheroot, CherryPy's server in Python: one process with a pool of threads."""

from velodrome.guest.stack import SUPERVISION, Launch, Process, Server, Stack, one_per_thread

SERVER = Server(
    "cheroot",
    race_only={"--shutdown-timeout": SUPERVISION},
    access_log="none",
    most_idle=10,  # keep_alive_conn_limit
    keeps_idle_s=lambda knobs: float(knobs["keepalive"]),
    parts={"HTTP": ("cheroot/server", "cheroot/makefile"), "server": ("cheroot",)},
)


def command(launch: Launch) -> Process:
    """Return the command line; the pool does not grow, as that of a deployment would not."""
    return Process(
        (
            "-m",
            "cheroot",
            "--bind=%s:%d" % (launch.host, launch.port),
            "--threads=%s" % launch.text("threads"),
            "--max-threads=%s" % launch.text("threads"),
            "--request-queue-size=%s" % launch.text("backlog"),
            # Longer than a load, or a proxy (nginx: 60 s), leaves a connection idle; cheroot's own are 10 s.
            "--timeout=%s" % launch.text("keepalive"),
            "--shutdown-timeout=2",
            launch.app,
        )
    )


stack = Stack(
    name="cheroot",
    title="cheroot",
    about="One process with a pool of threads; a request that waits holds one of it; of idle connections it keeps 10.",
    interface="wsgi",
    concurrency="threads",
    command=command,
    requires=("cheroot==11.1.2",),
    knobs={"threads": 10, "backlog": 2048, "keepalive": 75},
    slots=one_per_thread,
    python=(3, 9),
    server=SERVER,
)
