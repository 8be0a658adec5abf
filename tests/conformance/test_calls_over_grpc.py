"""Every stack that has a client of gRPC: it calls a real server, many times at once, and tells a failure."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.conformance.answering import check_nothing_is_left
from tests.conformance.booted import Booted, booted
from tests.conformance.grpc_wire import call, send_calls
from tests.conformance.wire import Wire

from velodrome.guest import catalog
from velodrome.guest.grpc.greeter import PEER
from velodrome.guest.recipe import GRPC_VARIABLE, Body, Call, Recipe
from velodrome.guest.stack import Stack
from velodrome.run.servers import fresh_port

CALLS = catalog.recipe("greeting-200ms")
CHAIN = Recipe("x", "x", (Call(20, over="grpc"), Call(100, times=5, parallel=True, over="grpc"), Body(84)))
STACKS = {name: stack for name, stack in catalog.stacks().items() if catalog.serves(stack, CALLS) is None}
TOGETHER = 20
IN_TURN_S = TOGETHER * 0.12
"""What the last would take if each call waited for the one before it."""
REPORTED = {
    "http": "answers status 502",
    "grpc": "grpc-status 14 UNAVAILABLE: the third party did not answer",
}
every = pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS)

PythonOf = Callable[[Stack], Path]


@pytest.fixture(scope="module")
def peer(python_of: PythonOf, tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a gRPC server that answers when its request says."""
    stack = catalog.stack("grpc-aio")
    folder = tmp_path_factory.mktemp("peer")
    with booted(stack, PEER, python_of(stack), tree, "", folder) as server:
        yield f"127.0.0.1:{server.port}"


def test_web_apps_and_grpc_servers_call() -> None:
    protocols = {catalog.interface(stack.interface).protocol for stack in STACKS.values()}
    assert protocols == {"http", "grpc"}
    assert {"tasks", "threads", "greenlets"} <= {stack.concurrency for stack in STACKS.values()}


@every
def test_it_calls_many_times_at_once_and_leaves_nothing(
    stack: Stack, peer: str, python_of: PythonOf, tree: Path, tmp_path: Path
) -> None:
    python, to_peer = python_of(stack), {GRPC_VARIABLE: peer}
    with booted(stack, CHAIN, python, tree, "", tmp_path, variables=to_peer) as server:
        for _ in range(3):  # the first ones may have the channel to make
            seconds = times(server, python, tree, CHAIN)
            assert min(seconds) >= 0.9 * 0.12, "it did not wait for its third party"
            if max(seconds) < IN_TURN_S / 2:
                break
        assert max(seconds) < IN_TURN_S / 2, "calls wait for one another"
        assert server.output() == "" or stack.interface in ("flask", "starlette"), server.output()
        check_nothing_is_left(server)


@every
def test_a_third_party_that_is_not_there_is_reported(
    stack: Stack, python_of: PythonOf, tree: Path, tmp_path: Path
) -> None:
    nobody = f"127.0.0.1:{fresh_port()}"
    reported = REPORTED[catalog.interface(stack.interface).protocol]
    booting = booted(stack, CALLS, python_of(stack), tree, "", tmp_path, variables={GRPC_VARIABLE: nobody})
    with pytest.raises(AssertionError, match=reported), booting:
        pass


def times(server: Booted, python: Path, tree: Path, recipe: Recipe) -> list[float]:
    """Call many times at once, and return the seconds that each right answer took."""
    if catalog.interface(server.server.serving.stack.interface).protocol == "grpc":
        responses = send_calls(python, tree, [call(server.port, recipe)] * TOGETHER, together=True)
        assert {response.code for response in responses} == {0}, server.output()
        return [response.seconds for response in responses]

    def over_http(number: int) -> float:
        with Wire(server.port) as wire:
            began = time.monotonic()
            answer = wire.request(recipe.method, b"")
            assert (answer.status, answer.body) == (200, recipe.answer()), server.output()
            return time.monotonic() - began

    with ThreadPoolExecutor(TOGETHER) as pool:
        return list(pool.map(over_http, range(TOGETHER)))
