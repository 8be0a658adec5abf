"""The methods of the service, and which of them a recipe is called by."""

import re

import pytest

from velodrome.guest import catalog
from velodrome.guest.grpc import greeter
from velodrome.guest.recipe import Body, Chat, ReadBody, Recipe, Sleep, Step, Stream

STREAM = Stream(3, 10, 5)


@pytest.mark.parametrize(
    ("steps", "name"),
    [
        ((Sleep(5), Body(84)), "SayHello"),
        ((STREAM,), "SayHelloStream"),
        ((ReadBody(), Body(84)), "CollectHellos"),
        ((ReadBody(), STREAM), "SayHelloStream"),
        ((Sleep(5), Chat()), "Chat"),
    ],
)
def test_a_recipe_is_called_by_the_method_that_its_steps_need(steps: tuple[Step, ...], name: str) -> None:
    recipe = Recipe("x", "x", steps)
    assert greeter.method_of(recipe).name == name
    assert greeter.method_of(recipe).supports(recipe)


def test_an_answer_in_pieces_needs_a_stream_of_replies_and_a_chat_streams_both_ways() -> None:
    streamed = Recipe("x", "x", (STREAM,))
    assert [method.name for method in greeter.METHODS if method.supports(streamed)] == [
        "SayHelloStream",
        "Chat",
    ]
    chat = Recipe("x", "x", (Chat(),))
    assert [method.name for method in greeter.METHODS if method.supports(chat)] == ["Chat"]


def test_the_methods_are_those_of_the_proto() -> None:
    text = re.sub(r"//.*", "", greeter.PROTO.read_text())
    methods = re.findall(r"rpc (\w+) \((stream )?\w+\) returns \((stream )?\w+\)", text)
    assert [(name, bool(takes), bool(gives)) for name, takes, gives in methods] == [
        (method.name, method.takes_stream, method.gives_stream) for method in greeter.METHODS
    ]


def test_an_upload_goes_out_whole_in_pieces_where_it_can() -> None:
    upload = catalog.recipe("upload-1mb")
    pieces = greeter.uploads(upload)
    assert b"".join(pieces) == upload.upload
    assert {len(piece) for piece in pieces[:-1]} == {64 * 1024}
    assert 0 < len(pieces[-1]) <= 64 * 1024
    assert greeter.uploads(catalog.recipe("hello")) == [b""]
    assert greeter.uploads(catalog.recipe("chat-echo")) == [b""]
    empty = Recipe("x", "x", (ReadBody(), Body(1)), "POST")
    assert greeter.uploads(empty) == [b""]
