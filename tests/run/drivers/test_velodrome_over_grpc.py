"""Velodrome's own driver against a real gRPC server: every kind of call, in both loops, over many streams."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from velodrome.guest import catalog
from velodrome.guest.recipe import Body, Chat, ReadBody, Recipe, Sleep, Stream
from velodrome.model.load import Closed, Load, Open
from velodrome.run.drivers.driver import Target
from velodrome.run.drivers.velodrome import VelodromeDriver
from velodrome.run.environments import environment, guest_tree
from velodrome.run.machine.limits import Bounds
from velodrome.run.servers import Ready, Server, Serving, await_right_answer, fresh_port

STACK = catalog.stack("grpc-aio")
WAITS = Recipe("waits", "waits 20 ms", (Sleep(20), Body(84)))
STREAMS = Recipe("streams", "streams", (Stream(3, 100, 20),))
UPLOADS = Recipe("uploads", "takes an upload", (ReadBody(), Body(5)), "POST", 200_000)
CHATS = Recipe("chats", "chats", (Chat(),))

pytestmark = pytest.mark.skipif(
    environment.cannot_run(STACK) is not None, reason=str(environment.cannot_run(STACK))
)


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[[Recipe], Target]]:
    """Serve a recipe to the end of the tests."""
    python = environment.environment_for(STACK, None).python
    with ExitStack() as running:

        def serving(recipe: Recipe) -> Target:
            what = Serving(STACK, recipe, python, guest_tree.export(), fresh_port())
            server = running.enter_context(Server(what, Bounds("nothing")))
            target = Target.of_recipe(server.url, recipe)
            ready = await_right_answer(target, server.exit, server.started, 20.0)
            assert isinstance(ready, Ready), (ready, server.last_lines())
            return target

        yield serving


@pytest.mark.parametrize("recipe", [WAITS, STREAMS, UPLOADS, CHATS], ids=lambda recipe: recipe.name)
def test_every_kind_of_call_is_made_and_its_replies_are_right(
    recipe: Recipe, serve: Callable[[Recipe], Target]
) -> None:
    facts = VelodromeDriver().run(Load(Closed(2), 0.5, streams=3), serve(recipe), lambda event: True)
    assert facts.ok > 20, json.dumps(facts.outcomes)
    assert facts.ok == facts.requests, facts.examples
    assert (facts.connections_opened, facts.connections_answered) == (2, 2)
    assert facts.mean_in_flight == pytest.approx(6, abs=0.5)
    if recipe is STREAMS:
        assert facts.first_due is not None
        assert facts.first_due.p50 is not None
        assert facts.due.p50 is not None
        assert facts.first_due.p50 < 20, "the first chunk comes at once"
        assert facts.due.p50 > 40, "the third after two pauses"
    else:
        assert (facts.first_due is not None) == recipe.chats


def test_an_open_loop_over_one_connection_keeps_its_rate(serve: Callable[[Recipe], Target]) -> None:
    facts = VelodromeDriver().run(
        Load(Open(200.0, connections=1), 1.0, streams=50), serve(WAITS), lambda event: True
    )
    assert facts.requests == facts.ok == 200
    assert facts.connections_opened == 1
    assert facts.due.p50 is not None
    assert facts.due.p50 >= 20
