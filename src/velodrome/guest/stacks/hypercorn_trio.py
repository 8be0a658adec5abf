"""hypercorn on trio, for apps that are written for trio."""

from velodrome.guest.interfaces.asgi_trio import TRIO
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks import _gunicorn, hypercorn


def command(launch: Launch) -> Process:
    """Return the command line."""
    return hypercorn.serve_on("trio", launch)


stack = Stack(
    name="hypercorn-trio",
    title="hypercorn · trio",
    about="trio's event loop with a parser in Python; while a request awaits the others run, and ends each connection "
    "after 1,000 requests.",
    interface="asgi_trio",
    concurrency="tasks",
    command=command,
    requires=("hypercorn==0.18.0", "h11==0.16.0", TRIO),
    knobs={"workers": 1, "backlog": 2048, "keepalive": 75, **_gunicorn.RECYCLED},
    cannot=dict.fromkeys(
        ("query", "write"), "clients of databases that await are for asyncio, and this is trio"
    ),
    python=(3, 10),
    server=hypercorn.SERVER,
)
