"""A stack of the ward: gunicorn's sync workers, of which each is replaced after so many requests.

A sync worker takes a connection when it is idle, so that under load all of them count alike. Workers with threads take
connections while they work, and one of them gets most.
"""

from velodrome.guest.stack import Stack, one_per_worker
from velodrome.guest.stacks import _gunicorn


def _command(launch):
    requests, jitter = (launch.text(name) for name in ("max_requests", "jitter"))
    return _gunicorn.serve(launch, "sync", f"--max-requests={requests}", f"--max-requests-jitter={jitter}")


stack = Stack(
    name="gunicorn-recycling",
    title="gunicorn · recycling",
    about="gunicorn's sync workers with a limit of requests for each.",
    interface="wsgi",
    concurrency="processes",
    command=_command,
    requires=_gunicorn.REQUIRES,
    knobs={"workers": 4, "backlog": 2048, "max_requests": 200, "jitter": 0},
    slots=one_per_worker,
    keeps_alive=False,
    python=_gunicorn.OLDEST_PYTHON,
    server=_gunicorn.SERVER,
)
