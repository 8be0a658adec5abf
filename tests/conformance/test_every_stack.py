"""Every stack x every recipe it can serve: answers rightly, keeps a connection or not, leaves nothing."""

import math
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.conformance.answering import check, check_connection, check_nothing_is_left, check_one_answer
from tests.conformance.booted import Booted, booted
from tests.conformance.dealing import RECIPES, marks, of_each
from tests.conformance.wire import Wire

from velodrome.guest import catalog
from velodrome.guest.recipe import Body, Recipe, Sleep
from velodrome.guest.stack import Stack

STACKS = {
    name: stack
    for name, stack in catalog.stacks().items()
    if catalog.interface(stack.interface).protocol == "http"  # gRPC: test_every_grpc_stack.py
}
PAIRS = [
    pytest.param(stack, recipe, id=f"{stack.name}-{recipe.name}", marks=marks(stack, recipe, STACKS))
    for stack in STACKS.values()
    for recipe in RECIPES.values()
    if catalog.serves(stack, recipe) is None
    and not recipe.chats  # test_every_chat.py
    and not recipe.services  # test_every_database.py, test_calls_over_grpc.py
]
WAIT = Recipe("wait", "waits 100 ms", (Sleep(100), Body(84)))
TOGETHER = 12
WORKERS_S = 20.0


def test_no_plugin_is_broken() -> None:
    assert catalog.broken_plugins() == []


@pytest.mark.parametrize(("stack", "recipe"), PAIRS)
def test_it_answers_rightly_and_leaves_nothing(
    stack: Stack,
    recipe: Recipe,
    python_of: Callable[[Stack], Path],
    tree: Path,
    upstream: str,
    tmp_path: Path,
) -> None:
    with booted(stack, recipe, python_of(stack), tree, upstream, tmp_path) as server:
        with Wire(server.port) as wire:
            answer = wire.request(recipe.method, recipe.upload)
            check(answer, stack, recipe, server)
            check_connection(wire, stack, recipe, server, answer)
        assert server.files() == []
        assert "HTTP/1.1" not in server.output(), "it logs each request"
        check_nothing_is_left(server)


def who_serves(stack: Stack) -> Hashable:
    """Return what decides how many are served at once: the server and its workers, whichever framework they run."""
    if stack.server is None:
        return stack.name
    return (stack.server.module, stack.concurrency, stack.requires)


@of_each({name: stack for name, stack in STACKS.items() if catalog.serves(stack, WAIT) is None}, who_serves)
def test_it_serves_as_many_at_once_as_it_says_and_its_workers_end_with_it(
    stack: Stack, python_of: Callable[[Stack], Path], tree: Path, upstream: str, tmp_path: Path
) -> None:
    recipe = WAIT
    knobs = {"workers": 3} if "workers" in stack.knobs else {}
    slots = stack.slots(stack.settings(knobs)) or TOGETHER
    with booted(stack, recipe, python_of(stack), tree, upstream, tmp_path, knobs) as server:
        at_start = server.output().count("\n")  # some say much when they start
        at_least_s = 0.1 * math.ceil(TOGETHER / slots)
        until = time.monotonic() + WORKERS_S
        # Again and again: workers start one after the other, share unevenly, and this machine may be busy.
        while True:
            processes, took_s = request_together(server, stack, recipe)
            assert took_s >= at_least_s - 0.002, "it serves more at once than it says"
            # One that serves a request at a time has shown that by how long they took.
            if processes >= 3 * len(knobs) and (slots == 1 or took_s < 2 * at_least_s + 0.1):
                break
            sentence = f"{processes} processes, {took_s:.2f} s where {at_least_s:.2f} s are enough"
            assert time.monotonic() < until, f"{sentence}\n{server.output()}"
        assert server.output().count("\n") < at_start + TOGETHER / 2, (
            f"it logs each request:\n{server.output()}"
        )
        if knobs:
            server.settle()  # workers may still start
        check_nothing_is_left(server)


def request_together(server: Booted, stack: Stack, recipe: Recipe) -> tuple[int, float]:
    """Send many requests at once; return how many processes were there meanwhile, and the seconds it took."""
    with ThreadPoolExecutor(TOGETHER) as pool:
        began = time.monotonic()
        futures = [pool.submit(check_one_answer, server, stack, recipe) for _ in range(TOGETHER)]
        time.sleep(0.05)  # in the midst of them; they take 100 ms at least
        processes = len(server.processes())
        for future in futures:
            future.result()
        return processes, time.monotonic() - began
