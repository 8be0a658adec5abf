"""Django (ASGI, async views) on uvicorn."""

from velodrome.guest.stack import Stack
from velodrome.guest.stacks import _uvicorn

stack = Stack(
    name="django-uvicorn",
    title="Django · uvicorn",
    about="Django with async views on uvicorn's event loop; while a view awaits the others run.",
    interface="django_asgi",
    concurrency="tasks",
    command=_uvicorn.fast,
    requires=_uvicorn.REQUIRES,
    knobs={"workers": 1, "loop": "uvloop", "backlog": 2048},
    choices={"loop": ("uvloop", "asyncio")},
    python=(3, 10),
    server=_uvicorn.SERVER,
)
