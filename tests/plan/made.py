"""A few stacks and recipes for study files to name."""

from velodrome.guest.recipe import Body, Call, Recipe
from velodrome.guest.stack import KnobValue, Launch, Process, Stack, one_per_worker, unbounded


def _command(launch: Launch) -> Process:
    return Process(("-m", "server"))


def stack(
    name: str, knobs: dict[str, KnobValue], sync: bool = False, cannot: dict[str, str] | None = None
) -> Stack:
    return Stack(
        name,
        name,
        "made up",
        "wsgi",
        "sync",
        _command,
        knobs=knobs,
        choices={"loop": ("uvloop", "asyncio")},
        slots=one_per_worker if sync else unbounded,
        cannot=cannot or {},
    )


STACKS = {
    one.name: one
    for one in (
        stack("uvicorn", {"workers": 1, "loop": "uvloop"}),
        stack("gunicorn-sync", {"workers": 1, "backlog": 2048}, sync=True),
        stack("gunicorn-gevent", {"workers": 1}),
        stack("picky", {}, cannot={"call": "it calls nobody"}),
    )
}
RECIPES = {
    one.name: one
    for one in (
        Recipe("hello", "answers at once, 84 bytes", (Body(84),)),
        Recipe("third-party-200ms", "waits 200 ms on a third party", (Call(200), Body(84))),
    )
}
