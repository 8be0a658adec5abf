"""gunicorn as the supervisor of uvicorn workers (uvloop and httptools)."""

from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks import _gunicorn, _uvicorn


def command(launch: Launch) -> Process:
    """Return the command line; `uvicorn.workers` is deprecated, the class lives in its own package now."""
    return _gunicorn.serve(launch, "uvicorn_worker.UvicornWorker")


stack = Stack(
    name="gunicorn-uvicorn",
    title="gunicorn · uvicorn worker",
    about="Forked workers, each a uvicorn on uvloop; while a request awaits the worker's other tasks run.",
    interface="asgi",
    concurrency="tasks",
    command=command,
    requires=(*_gunicorn.REQUIRES, *_uvicorn.REQUIRES, "uvicorn-worker==0.4.0"),
    knobs={"workers": 1, "backlog": 2048, "preload": 0, **_gunicorn.RECYCLED},
    cannot={"chat": "its environment has no WebSocket library; that of the stack uvicorn has"},
    python=_gunicorn.OLDEST_PYTHON,
    server=_gunicorn.SERVER,
)
