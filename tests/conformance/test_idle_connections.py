"""A connection that a load leaves idle for a while is still there when the load comes back to it."""

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conformance.booted import booted
from tests.conformance.wire import Wire

from velodrome.guest import catalog
from velodrome.guest.stack import Stack

IDLE_S = 45.0


@pytest.mark.exhaustive
@pytest.mark.timeout(300)
def test_every_stack_that_keeps_connections_keeps_them_for_most_of_a_minute(
    python_of: Callable[[Stack], Path], tree: Path, tmp_path: Path
) -> None:
    recipe = catalog.recipe("hello")
    with contextlib.ExitStack() as running:
        wires = {}
        for name, stack in catalog.stacks().items():
            over_http = catalog.interface(stack.interface).protocol == "http"
            if stack.keeps_alive and over_http and catalog.serves(stack, recipe) is None:
                server = running.enter_context(
                    booted(stack, recipe, python_of(stack), tree, "", tmp_path / name)
                )
                wires[name] = running.enter_context(Wire(server.port))
                wires[name].request(recipe.method, b"")
        # No deadline to poll for: that nothing happens for so long is what is tested.
        time.sleep(IDLE_S)
        ended = [name for name, wire in wires.items() if not still_there(wire, recipe.method)]
    assert ended == []


def still_there(wire: Wire, method: str) -> bool:
    try:
        return wire.request(method, b"").status == 200
    except OSError:
        return False
