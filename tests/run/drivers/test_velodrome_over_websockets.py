"""Our own driver against a real server that holds WebSockets: recipe and load say what a request is."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from tests.run import made

from velodrome.guest import catalog
from velodrome.guest.recipe import Chat, Recipe, Sleep
from velodrome.model.errors import UnfitLoadError
from velodrome.model.load import Closed, Load, Open
from velodrome.run.drivers.driver import Target, choose_driver
from velodrome.run.drivers.velodrome import VelodromeDriver
from velodrome.run.environments import environment, guest_tree
from velodrome.run.machine.limits import Bounds
from velodrome.run.servers import Ready, Server, Serving, await_right_answer, fresh_port

STACK = catalog.stack("websockets-asyncio")
ECHO = Recipe("waits-chat", "waits 20 ms before each message", (Sleep(20), Chat()))
ROOM = catalog.recipe("chat-room")

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


def test_a_message_comes_back_on_a_connection_that_stays(serve: Callable[[Recipe], Target]) -> None:
    facts = VelodromeDriver(threads=2).run(Load(Closed(4), 0.5), serve(ECHO), lambda event: True)
    assert facts.ok > 20, json.dumps(facts.outcomes)
    assert facts.ok == facts.requests, facts.examples
    assert (facts.connections_opened, facts.connections_reopened, facts.generator_threads) == (4, 0, 2)
    assert facts.sent.p50 is not None
    assert facts.sent.p50 >= 20
    assert facts.deliveries is None


def test_a_load_that_keeps_no_connection_measures_the_time_to_be_connected(
    serve: Callable[[Recipe], Target],
) -> None:
    load = Load(Closed(2), 5.0, requests=40, keepalive=False)
    facts = VelodromeDriver().run(load, serve(ECHO), lambda event: True)
    assert facts.ok == facts.requests == 40, facts.examples
    assert facts.connections_opened is not None
    assert facts.connections_reopened is not None
    assert facts.connections_opened + facts.connections_reopened == 40
    assert facts.due.p50 is not None
    assert facts.due.p50 < 20, "no message waited"


def test_a_message_to_a_room_is_done_with_its_last_delivery(serve: Callable[[Recipe], Target]) -> None:
    load = Load(Open(100.0, connections=10), 1.0, threads=2)
    facts = VelodromeDriver().run(load, serve(ROOM), lambda event: True)
    assert facts.ok == facts.requests == 100, facts.examples
    assert (facts.connections_opened, facts.generator_threads) == (10, 1)
    assert facts.deliveries == 1000
    assert facts.delivery_due is not None
    assert facts.delivery_sent is not None
    assert facts.delivery_due.max is not None
    assert facts.due.max is not None
    assert facts.delivery_due.max <= facts.due.max


@pytest.mark.parametrize("name", ["ab", "wrk", "oha", "h2load", "ghz"])
def test_other_generators_say_that_they_hold_no_websockets(name: str) -> None:
    target = Target.of_recipe("ws://127.0.0.1:9/", ROOM)
    with pytest.raises(UnfitLoadError):
        choose_driver(name, made.PLACED, 1).run(Load(Closed(1), 1.0, requests=1), target, lambda event: True)
