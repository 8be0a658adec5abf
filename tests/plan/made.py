"""A few stacks and recipes for study files to name, and study files that are right but for one thing."""

import pytest

from velodrome.guest.recipe import Body, Call, Recipe
from velodrome.guest.stack import KnobValue, Launch, Process, Stack, one_per_worker, unbounded
from velodrome.model.errors import StudyFileError
from velodrome.model.study import Study
from velodrome.plan.findings import Known
from velodrome.plan.study_file import parse


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
    entry.name: entry
    for entry in (
        stack("uvicorn", {"workers": 1, "loop": "uvloop"}),
        stack("gunicorn-sync", {"workers": 1, "backlog": 2048}, sync=True),
        stack("gunicorn-gevent", {"workers": 1}),
        stack("picky", {}, cannot={"call": "it calls nobody"}),
    )
}
RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe("hello", "answers at once, 84 bytes", (Body(84),)),
        Recipe("third-party-200ms", "waits 200 ms on a third party", (Call(200), Body(84))),
    )
}
KNOWN = Known(
    STACKS,
    RECIPES,
    ("velodrome", "wrk"),
    {
        "canary": {"requests": 100, "stacks": (), "idiom": "local"},
        "versions": {"python": "", "packages": ()},
    },
)

ONE = "{connections = 1, duration = 1}"


def study(text: str) -> Study:
    return parse(text, "studies/mine.toml", KNOWN)


def problems(text: str) -> list[str]:
    with pytest.raises(StudyFileError) as caught:
        study(text)
    return [f"{problem.line}:{problem.column} {problem.sentence}" for problem in caught.value.problems]


def with_load(load: str) -> str:
    return f'contestants = ["uvicorn"]\n[[questions]]\nrecipe = "hello"\nloads = [{load}]\n'


def with_contestants(contestants: str) -> str:
    return f'contestants = {contestants}\n[[questions]]\nrecipe = "hello"\nloads = [{ONE}]\n'


def with_recipe(recipe: str) -> str:
    return f'contestants = ["uvicorn"]\n[[questions]]\nname = "q"\nrecipe = {recipe}\nloads = [{ONE}]\n'
