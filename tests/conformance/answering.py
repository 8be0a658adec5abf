"""What is checked of every server: its answer, its connection, and that it leaves nothing behind."""

from tests.conformance.booted import Booted
from tests.conformance.wire import Answer, Wire

from velodrome.guest import catalog
from velodrome.guest.recipe import Body, Recipe, Stream
from velodrome.guest.stack import Stack

SHARES_EPOLL = {"published-prefork"}
"""Forked when their loop was there, over one epoll: asyncio prints an error when two processes register one number."""


def check_one_answer(server: Booted, stack: Stack, recipe: Recipe) -> None:
    with Wire(server.port) as wire:
        check(wire.request(recipe.method, recipe.upload), stack, recipe, server)


def check(answer: Answer, stack: Stack, recipe: Recipe, server: Booted) -> None:
    interface = catalog.interface(stack.interface)
    assert answer.status == 200, server.output()
    assert answer.body == interface.answer(recipe)
    last = recipe.steps[-1]
    if isinstance(last, Body) and last.on_wire and interface.head_bytes is not None:
        assert answer.wire_bytes == last.size
    # A loop counts from when it last woke: on a busy machine libuv's timers end that much early.
    assert answer.took_s >= 0.9 * recipe.wait_ms / 1000, "it did not wait"
    if isinstance(last, Stream):
        over_s = answer.took_s - answer.first_byte_s
        assert over_s > recipe.wait_ms / 2000, "the chunks came all at once, in the end"


def check_connection(wire: Wire, stack: Stack, recipe: Recipe, server: Booted, first: Answer) -> None:
    # A body of unknown length may be ended by the end of the connection.
    if not isinstance(recipe.steps[-1], Stream):
        assert first.closes is not stack.keeps_alive
    if first.closes:
        assert wire.ended()
    else:
        check(wire.request(recipe.method, recipe.upload), stack, recipe, server)


def check_nothing_is_left(server: Booted) -> None:
    stopped = server.stop()
    assert stopped.left == ()
    assert not stopped.ending.hung, server.output()
    assert stopped.ending.orphans == 0, "workers outlived their master"
    # Ended by itself, or by the signal where it leaves that to the system.
    assert stopped.ending.exit is not None
    signal_number = server.server.serving.process().stop_signal
    assert stopped.ending.exit.code in (0, -signal_number, 128 + signal_number), server.output()
    assert server.files() == []
    if server.server.serving.stack.name not in SHARES_EPOLL:
        assert "Traceback" not in server.output(), server.output()
