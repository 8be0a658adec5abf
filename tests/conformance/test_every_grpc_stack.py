"""Every stack that speaks gRPC x every recipe it can serve: answers rightly, ends when stopped, leaves nothing."""

import math
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from tests.conformance.answering import check_nothing_is_left
from tests.conformance.booted import Booted, booted
from tests.conformance.dealing import RECIPES, marks
from tests.conformance.grpc_wire import CHAT, Response, call, send_calls

from velodrome.guest import catalog
from velodrome.guest.grpc.greeter import SAY_HELLO, greeting
from velodrome.guest.grpc.processes import GRACE_S
from velodrome.guest.recipe import Body, Recipe, Sleep, Stream
from velodrome.guest.stack import KnobValue, Stack
from velodrome.run.servers import environment_of

STACKS = {
    name: stack
    for name, stack in catalog.stacks().items()
    if catalog.interface(stack.interface).protocol == "grpc"
}
PAIRS = [
    pytest.param(stack, recipe, id=f"{stack.name}-{recipe.name}", marks=marks(stack, recipe, STACKS))
    for stack in STACKS.values()
    for recipe in RECIPES.values()
    if catalog.serves(stack, recipe) is None
    and not recipe.services  # test_every_database.py, test_calls_over_grpc.py
]
WAIT = Recipe("wait", "waits 100 ms", (Sleep(100), Body(84)))
HELLO = catalog.recipe("hello")
CANCELLED, UNKNOWN, UNIMPLEMENTED, UNAVAILABLE = 1, 2, 12, 14
TOGETHER = 12
WORKERS_S = 20.0
every = pytest.mark.parametrize("stack", STACKS.values(), ids=STACKS)

PythonOf = Callable[[Stack], Path]


def check(response: Response, recipe: Recipe, server: Booted, name: str = "world", times: int = 1) -> None:
    """Check the replies to a request that was sent so many times in one call."""
    assert (response.code, response.message) == (0, ""), server.output()
    assert set(response.messages) == {greeting(name)}
    assert response.right
    last = recipe.steps[-1]
    if recipe.chats:
        assert response.bodies == CHAT
    elif isinstance(last, Stream):
        assert response.bodies == [last.chunk_bytes] * last.chunks * times
        over_s = response.times[-1] - response.times[0]
        assert over_s > recipe.wait_ms / 2000, "the chunks came all at once, in the end"
    else:
        assert response.bodies == [len(recipe.answer())] * times
    assert response.seconds >= times * 0.9 * recipe.wait_ms / 1000, "it did not wait"


@pytest.mark.parametrize(("stack", "recipe"), PAIRS)
def test_it_answers_rightly_by_every_method_that_fits_and_leaves_nothing(
    stack: Stack, recipe: Recipe, python_of: PythonOf, tree: Path, upstream: str, tmp_path: Path
) -> None:
    python = python_of(stack)
    with booted(stack, recipe, python, tree, upstream, tmp_path) as server:
        whole = [recipe.upload_bytes]
        first, named, chat, hello = send_calls(
            python,
            tree,
            [
                call(server.port, recipe),
                call(server.port, recipe, name="Ada", sleep_millisecond=70),
                call(
                    server.port, recipe, **({} if recipe.chats else {"method": "Chat", "bodies": whole * 2})
                ),
                call(server.port, recipe, method="SayHello", bodies=whole),
            ],
        )
        check(first, recipe, server)
        check(named, recipe, server, "Ada")
        assert named.seconds > 0.07 + 0.9 * recipe.wait_ms / 1000, (
            "it did not wait as long as the request says"
        )
        check(chat, recipe, server, times=1 if recipe.chats else 2)
        if SAY_HELLO.supports(recipe):
            check(hello, recipe, server)
        else:
            assert hello.code == UNIMPLEMENTED
        assert server.files() == []
        check_nothing_is_left(server)


@pytest.mark.parametrize("workers", [1, 3])
@every
def test_it_serves_as_many_at_once_as_it_says_and_its_workers_end_with_it(
    stack: Stack, workers: int, python_of: PythonOf, tree: Path, tmp_path: Path
) -> None:
    knobs: dict[str, KnobValue] = {"workers": workers, **({"threads": 2} if "threads" in stack.knobs else {})}
    slots = stack.slots(stack.settings(knobs)) or TOGETHER
    at_least_s = 0.1 * math.ceil(TOGETHER / slots)
    python = python_of(stack)
    with booted(stack, WAIT, python, tree, "", tmp_path, knobs) as server:
        until = time.monotonic() + WORKERS_S
        # Again and again: workers start one after the other, the kernel deals connections unevenly.
        while True:
            responses = send_calls(python, tree, [call(server.port, WAIT)] * TOGETHER, together=True)
            for response in responses:
                check(response, WAIT, server)
            # From the first's start: a client that is late itself starts some of them when others are served.
            took_s = max(response.started + response.seconds for response in responses) - min(
                response.started for response in responses
            )
            assert took_s >= at_least_s - 0.002, "it serves more at once than it says"
            processes = len(server.processes())
            if processes >= workers and took_s < 2 * at_least_s + 0.1:
                break
            sentence = f"{processes} processes, {took_s:.2f} s where {at_least_s:.2f} s are enough"
            assert time.monotonic() < until, f"{sentence}\n{server.output()}"
        assert server.output() == "", "it logs"
        check_nothing_is_left(server)


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.exhaustive), 2])
@every
def test_a_second_server_on_its_port_does_not_start_silently(
    stack: Stack, workers: int, python_of: PythonOf, tree: Path, tmp_path: Path
) -> None:
    python = python_of(stack)
    with booted(stack, HELLO, python, tree, "", tmp_path, {"workers": workers}) as server:
        serving = server.server.serving
        process = serving.process()
        env = environment_of(serving, process, tmp_path)
        second = subprocess.run(
            [python, *process.argv],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        assert second.returncode not in (0, None)
        assert "ddress already in use" in second.stderr
        for response in send_calls(python, tree, [call(server.port, HELLO)] * 3):
            check(response, HELLO, server)


@pytest.mark.exhaustive
@every
def test_a_call_in_flight_does_not_keep_it_from_ending(
    stack: Stack, python_of: PythonOf, tree: Path, tmp_path: Path
) -> None:
    python = python_of(stack)
    with booted(stack, HELLO, python, tree, "", tmp_path) as server, ThreadPoolExecutor(1) as pool:
        long = pool.submit(send_calls, python, tree, [call(server.port, HELLO, sleep_millisecond=15_000)])
        until = time.monotonic() + WORKERS_S
        while not connected(server.port):
            assert time.monotonic() < until, "the client never came"
            time.sleep(0.02)
        time.sleep(0.2)  # from its connection to its call: nothing outside can see that
        began = time.monotonic()
        stopped = server.stop()
        assert time.monotonic() - began < 2 * GRACE_S + 1
        assert not stopped.ending.hung
        assert stopped.left == ()
        (response,) = long.result()
        assert response.code in (CANCELLED, UNAVAILABLE, UNKNOWN)


def connected(port: int) -> bool:
    """Whether somebody is connected to a port here."""
    return any(
        connection.laddr.port == port and connection.status == psutil.CONN_ESTABLISHED
        for connection in psutil.net_connections("tcp")
        if connection.laddr
    )
