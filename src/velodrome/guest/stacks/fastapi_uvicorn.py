"""FastAPI on uvicorn."""

from velodrome.guest.stack import Stack
from velodrome.guest.stacks import _uvicorn

stack = Stack(
    name="fastapi-uvicorn",
    title="FastAPI · uvicorn",
    about="FastAPI with async endpoints on uvicorn's event loop; while an endpoint awaits the others run.",
    interface="fastapi",
    concurrency="tasks",
    command=_uvicorn.fast,
    requires=_uvicorn.REQUIRES,
    knobs={"workers": 1, "loop": "uvloop", "backlog": 2048},
    choices={"loop": ("uvloop", "asyncio")},
    python=(3, 11),
    server=_uvicorn.SERVER,
)
