"""Every shipped recipe through every interface, in the environment of a stack but without its server."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import pytest

from velodrome.guest import catalog
from velodrome.guest.recipe import Body, Call, Query, Recipe, Sleep, Together, Write, to_plain, wait_ms
from velodrome.run.environments import environment, guest_tree

AT_ONCE = Recipe(
    "at-once",
    "does five things at once, then writes",
    (
        Together((Call(200), Call(300), Sleep(300), Query(3), Write(2))),
        Query(2, driver="sqlite3", ms=20),
        Write(),
        Body(84),
    ),
)
RECIPES = {
    name: recipe
    for name, recipe in {**catalog.recipes(), "at-once": AT_ONCE}.items()
    if not (recipe.chats or recipe.services or recipe.calls_grpc)
}
DEADLINE_S = 60.0
PROGRAMS = {"http": "called.py", "grpc": "called_grpc.py"}
NOBODY = "http://127.0.0.1:9"
"""The discard port: nothing listens there."""


class ThirdParty(BaseHTTPRequestHandler):
    """Answers `GET /?velodrome-latency=75ms` after that time, under `/broken` with status 500."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self) -> None:
        path, _, latency = self.path.partition("?velodrome-latency=")
        sleep(float(latency.removesuffix("ms")) / 1000)
        self.send_response(500 if path.startswith("/broken") else 200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"done")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def third_party() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), ThirdParty) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@dataclass(frozen=True)
class Answer:
    status: int
    length: int
    right: bool
    seconds: float


Send = Callable[[list[dict[str, Any]]], list[Answer]]


def case(recipe: Recipe, upstream: str, upload: int | None = None) -> dict[str, Any]:
    length = recipe.upload_bytes if upload is None else upload
    return {"recipe": to_plain(recipe), "upstream": upstream, "upload": length}


INTERFACES = [name for name in sorted(catalog.interfaces()) if not name.startswith("websockets")]
DAILY = {"asgi", "wsgi", "rsgi", "tornado", "aiohttp", "grpc", "grpc_aio", "socket_blocking"}
"""One of each idiom: how a handler waits, refuses and fails is compiled for the idiom, not for the framework."""
some = pytest.mark.parametrize(
    "interface",
    [pytest.param(name, marks=() if name in DAILY else pytest.mark.exhaustive) for name in INTERFACES],
    indirect=True,
    scope="module",
)


@pytest.fixture(scope="module", params=INTERFACES)
def interface(request: pytest.FixtureRequest) -> str:
    """One interface after the other."""
    return str(request.param)


@pytest.fixture(scope="module")
def send(interface: str) -> Send:
    """Call handlers of one interface; all cases that are sent together are called by one process."""
    serving = [stack for stack in catalog.stacks().values() if stack.interface == interface]
    runnable = [stack for stack in serving if environment.available(stack) is None]
    if not runnable:
        pytest.skip(f"{interface}: no stack that serves it can run here")
    python = environment.environment_for(runnable[0]).python
    program = Path(__file__).with_name(PROGRAMS[catalog.interface(interface).protocol])
    env = {"PYTHONPATH": str(guest_tree.export()), "PATH": os.environ["PATH"], "PYTHONNOUSERSITE": "1"}

    def send(cases: list[dict[str, Any]]) -> list[Answer]:
        command = [str(python), "-P", str(program), interface]
        done = subprocess.run(
            command, input=json.dumps(cases), env=env, capture_output=True, text=True, timeout=90, check=False
        )
        assert done.returncode == 0, done.stderr
        answers = [Answer(**json.loads(line)) for line in done.stdout.splitlines()]
        assert all(answer.status for answer in answers), done.stderr
        return answers

    return send


def serves(interface: str, recipe: Recipe) -> bool:
    """Whether the stacks of an interface serve a recipe: those of a publication answer a body and no more."""
    stacks = [stack for stack in catalog.stacks().values() if stack.interface == interface]
    return any(catalog.serves(stack, recipe) is None for stack in stacks)


@pytest.fixture
def whole(interface: str) -> None:
    """Leave out interfaces whose handlers do not do everything a recipe may need."""
    if not serves(interface, AT_ONCE):
        pytest.skip(f"{interface} answers a body and no more")


def test_every_recipe_is_answered_rightly_and_not_too_early(
    send: Send, third_party: str, interface: str
) -> None:
    recipes = [recipe for recipe in RECIPES.values() if serves(interface, recipe)]
    answers = send([case(recipe, third_party) for recipe in recipes])
    for recipe, answer in zip(recipes, answers, strict=True):
        assert (recipe.name, answer.status, answer.right) == (recipe.name, 200, True), answer
        assert answer.seconds * 1000 >= recipe.wait_ms - 1, recipe.name


@some
@pytest.mark.usefixtures("whole")
def test_what_is_done_at_once_takes_as_long_as_the_longest_of_it(send: Send, third_party: str) -> None:
    in_turn_ms = sum(map(wait_ms, AT_ONCE.every_step))
    until = time.monotonic() + DEADLINE_S  # a busy machine delays some; one after the other none is that fast
    while (answer := send([case(AT_ONCE, third_party)])[0]).seconds * 1000 >= in_turn_ms - 100:
        assert time.monotonic() < until, (
            f"{answer.seconds * 1000:.0f} ms; one after the other it is {in_turn_ms:.0f}"
        )


@some
@pytest.mark.usefixtures("whole")
def test_an_upload_of_another_length_is_refused(send: Send) -> None:
    recipe = RECIPES["upload-1mb"]
    lengths = (recipe.upload_bytes - 1, recipe.upload_bytes + 1, 0)
    for answer in send([case(recipe, "", length) for length in lengths]):
        assert (answer.status, answer.length) == (400, 0)


@some
@pytest.mark.usefixtures("whole")
def test_a_third_party_that_fails_or_is_not_there_is_a_bad_gateway(send: Send, third_party: str) -> None:
    """A branch that fails fails the whole, too."""
    branch = Recipe("a-branch", "asks in one of two branches", (Together((Sleep(5), Call(1))), Body(84)))
    recipes = [branch, *(recipe for recipe in RECIPES.values() if recipe.calls_upstream)]
    failing = [(recipe, upstream) for recipe in recipes for upstream in (third_party + "/broken", NOBODY)]
    answers = send([case(recipe, upstream) for recipe, upstream in failing])
    for (recipe, upstream), answer in zip(failing, answers, strict=True):
        assert (recipe.name, upstream, answer.status, answer.length) == (recipe.name, upstream, 502, 0)
