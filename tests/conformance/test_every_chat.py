"""Every stack that can hold a WebSocket: messages come back to whom they should, and nothing is left."""

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.conformance.chat_wire import BINARY, CLOSE, TEXT, Member
from tests.conformance.dealing import of_each

from velodrome.guest import catalog
from velodrome.guest.recipe import Chat, Recipe, Sleep
from velodrome.guest.stack import Stack
from velodrome.run import engine
from velodrome.run.engine import LoadSpec
from velodrome.run.machine.limits import Bounds
from velodrome.run.servers import Server, Serving, fresh_port

ECHO, ROOM = catalog.recipe("chat-echo"), catalog.recipe("chat-room")
CHATTING = {name: stack for name, stack in catalog.stacks().items() if catalog.serves(stack, ROOM) is None}
MESSAGES = [
    (TEXT, b"hello"),
    (BINARY, bytes(range(256))),
    (TEXT, "grüß dich".encode() * 30),
    (BINARY, b"x" * 70_000),
]
every = pytest.mark.parametrize("stack", CHATTING.values(), ids=CHATTING)
of_each_interface = of_each(CHATTING, lambda stack: stack.interface)


@contextmanager
def serving(stack: Stack, recipe: Recipe, python: Path, tree: Path) -> Iterator[Server]:
    with Server(Serving(stack, recipe, python, tree, fresh_port()), Bounds("nothing")) as server:
        try:
            yield server
        except Exception as error:
            raise AssertionError("\n".join([repr(error), *server.last_lines()])) from error
        stopped = server.stop(10.0)
        assert not stopped.ending.hung, server.last_lines()
        assert stopped.left == ()


def test_there_are_some_on_tasks_and_one_on_threads() -> None:
    assert {"tasks", "threads"} == {stack.concurrency for stack in CHATTING.values()}


@every
def test_each_message_comes_back_to_its_sender_alone(
    stack: Stack, python_of: Callable[[Stack], Path], tree: Path
) -> None:
    with serving(stack, ECHO, python_of(stack), tree) as server, ExitStack() as leaving:
        member, other = (leaving.enter_context(Member(server.serving.port)) for _ in range(2))
        for kind, data in MESSAGES:
            member.send(kind, data)
            assert member.receive() == (kind, data)
        other.send(TEXT, b"mine")
        assert other.receive() == (TEXT, b"mine"), "it was sent another member's message first"


@of_each_interface
def test_a_room_gives_each_message_to_all_and_forgets_who_left(
    stack: Stack, python_of: Callable[[Stack], Path], tree: Path
) -> None:
    with serving(stack, ROOM, python_of(stack), tree) as server, ExitStack() as leaving:
        members = [leaving.enter_context(Member(server.serving.port)) for _ in range(5)]
        # Whoever has seen a message of his own is a member.
        for number, member in enumerate(members):
            member.send(TEXT, b"here %d" % number)
            while member.receive() != (TEXT, b"here %d" % number):
                pass
        for kind, data in MESSAGES:
            members[0].send(kind, data)
            for member in members:
                while (got := member.receive())[1].startswith(b"here"):
                    pass
                assert got == (kind, data)
        members[4].send(CLOSE, struct.pack(">H", 1000))
        members[3].socket.close()  # without a word
        for number in range(20):
            members[0].send(TEXT, b"still %d" % number)
            assert members[1].receive() == members[0].receive() == (TEXT, b"still %d" % number)


@of_each_interface
def test_our_engine_loads_it_in_every_mode(
    stack: Stack, python_of: Callable[[Stack], Path], tree: Path
) -> None:
    with serving(stack, ROOM, python_of(stack), tree) as server:
        with Member(server.serving.port):
            pass  # waits until it serves
        spec = LoadSpec(url=f"ws://127.0.0.1:{server.serving.port}/", timeout_s=5.0, requests=20)
        # Alone in the room, whoever speaks hears himself.
        echo = engine.load(
            spec.changed(connections=1, requests=50, websocket={"mode": "echo"}, body=b"hello")
        )
        connect = engine.load(spec.changed(connections=2, websocket={"mode": "connect"}))
        room = engine.load(spec.changed(connections=5, websocket={"mode": "broadcast", "message_bytes": 300}))
        for document, requests in ((echo, 50), (connect, 20), (room, 20)):
            assert document["ok"] == document["requests"] == requests, document["examples"]
        assert room["deliveries"]["count"] == 100
        assert room["deliveries"]["again"] == room["deliveries"]["strangers"] == 0
        assert room["connections"]["opened"] == room["connections"]["answered"] == 5


@of_each_interface
def test_the_steps_before_are_done_for_each_message(
    stack: Stack, python_of: Callable[[Stack], Path], tree: Path
) -> None:
    recipe = Recipe("slow-chat", "waits before each message", (Sleep(60), Chat()))
    with serving(stack, recipe, python_of(stack), tree) as server, Member(server.serving.port) as member:
        for _ in range(2):
            began = time.monotonic()
            member.send(TEXT, b"wait")
            assert member.receive() == (TEXT, b"wait")
            assert time.monotonic() - began >= 0.059
