"""A recipe becomes a servicer's methods: which are there, and nothing is left in them to interpret."""

import asyncio
import inspect
import linecache
from dataclasses import dataclass
from typing import Any

import pytest

from velodrome.guest.codegen.idioms import Awaiting, Blocking
from velodrome.guest.grpc.greeter import METHODS, Messages
from velodrome.guest.grpc.servicer import Frame, raising, servicer, snake_case
from velodrome.guest.recipe import Body, Chat, ReadBody, Recipe, Sleep, Step, Stream, filler
from velodrome.guest.services.hello import recipe as hello


@dataclass
class Request:
    name: str = "world"
    sleep_millisecond: int = 0
    body: bytes = b""


@dataclass
class Reply:
    message: str
    body: bytes


class RefusedError(Exception):
    pass


MESSAGES = Messages(Request, Reply)
FRAME = Frame("test", ", context", lambda method: method.name, raising("raise RefusedError('%s', %r)"))


def made(recipe: Recipe, idiom: Any = None) -> Any:
    return servicer(recipe, "", idiom or Blocking(), FRAME, MESSAGES, RefusedError=RefusedError)()


@pytest.mark.parametrize(
    ("steps", "names"),
    [
        ((Body(5),), {"SayHello", "SayHelloStream", "CollectHellos", "Chat"}),
        ((Stream(2, 5, 0),), {"SayHelloStream", "Chat"}),
        ((Chat(),), {"Chat"}),
    ],
)
def test_only_the_methods_that_can_carry_the_recipe_are_there(
    steps: tuple[Step, ...], names: set[str]
) -> None:
    assert {method.name for method in METHODS if hasattr(made(Recipe("x", "x", steps)), method.name)} == names


def test_a_method_of_hello_names_nothing_but_what_a_hand_written_one_would() -> None:
    code = type(made(hello)).SayHello.__code__
    assert set(code.co_names) == {"sleep_millisecond", "sleep", "name", "HelloReply", "BODY"}
    assert "".join(linecache.getlines(code.co_filename)).startswith("class Servicer:")


def test_replies_greet_and_carry_the_answer() -> None:
    greeter = made(Recipe("x", "x", (Stream(3, 5, 0),)))
    assert list(greeter.SayHelloStream(Request("Ada"), None)) == [Reply("Hello, Ada!", filler(5))] * 3
    greeter = made(Recipe("x", "x", (Body(7),)))
    assert greeter.SayHello(Request(), None) == Reply("Hello, world!", filler(7))
    assert list(greeter.Chat(iter([Request("a"), Request("b")]), None)) == [
        Reply("Hello, a!", filler(7)),
        Reply("Hello, b!", filler(7)),
    ]
    (echo,) = made(Recipe("x", "x", (Chat(),))).Chat(iter([Request(body=b"me")]), None)
    assert echo.body == b"me"


def test_an_upload_is_collected_and_one_of_another_length_refused() -> None:
    greeter = made(Recipe("x", "x", (ReadBody(), Body(1)), "POST", 6))
    pieces = [Request("first", body=b"abc"), Request("last", body=b"def")]
    assert greeter.CollectHellos(iter(pieces), None).message == "Hello, last!"
    for requests in (pieces[:1], [*pieces, pieces[0]], []):
        with pytest.raises(RefusedError, match="INVALID_ARGUMENT"):
            greeter.CollectHellos(iter(requests), None)
    assert greeter.SayHello(Request(body=b"abcdef"), None)
    with pytest.raises(RefusedError, match="INVALID_ARGUMENT"):
        greeter.SayHello(Request(body=b"abcdefg"), None)


def test_nobody_need_send_anything_to_be_greeted() -> None:
    assert made(hello).CollectHellos(iter([]), None).message == "Hello, world!"  # the default of this Request


def test_coroutines_await_what_the_others_wait_for() -> None:
    greeter = made(Recipe("x", "x", (Sleep(1), Body(7))), Awaiting())
    assert inspect.iscoroutinefunction(greeter.SayHello)
    assert inspect.isasyncgenfunction(greeter.Chat)
    assert asyncio.run(greeter.SayHello(Request(sleep_millisecond=1), None)).body == filler(7)


def test_betterproto_writes_names_in_snake_case() -> None:
    assert [snake_case(method) for method in METHODS] == [
        "say_hello",
        "say_hello_stream",
        "collect_hellos",
        "chat",
    ]
