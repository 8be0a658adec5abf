"""A recipe as a gRPC call: the same bytes that protobuf makes of it."""

import pytest

from velodrome.guest import catalog
from velodrome.guest.recipe import Body, ReadBody, Recipe, filler
from velodrome.run.calls import frame_messages, grpc_of_recipe, hello_reply, hello_request


@pytest.mark.parametrize(
    ("encoded", "wanted"),
    [
        # As google.protobuf 7.36 serializes them.
        (hello_request("world"), b"\n\x05world"),
        (hello_request("world", 10), b"\n\x05world\x10\x0a"),
        (hello_request("world", 300, b"x"), b"\n\x05world\x10\xac\x02\x1a\x01x"),
        (hello_request("", -1), b"\x10" + b"\xff" * 9 + b"\x01"),
        (hello_request("Ünï"), b"\n\x05\xc3\x9cn\xc3\xaf"),
        (hello_request(""), b""),
        (hello_reply("hi", b"y" * 200), b"\n\x02hi\x12\xc8\x01" + b"y" * 200),
    ],
)
def test_messages_are_encoded_as_protobuf_encodes_them(encoded: bytes, wanted: bytes) -> None:
    assert encoded == wanted


def test_each_message_has_its_length_before_it() -> None:
    assert frame_messages([b"ab", b""]) == b"\0\0\0\0\x02ab\0\0\0\0\0"


@pytest.mark.parametrize(
    ("name", "path", "kind"),
    [
        ("hello", "/helloworld.Greeter/SayHello", "unary"),
        ("stream", "/helloworld.Greeter/SayHelloStream", "server_streaming"),
        ("upload-1mb", "/helloworld.Greeter/CollectHellos", "client_streaming"),
        ("chat-echo", "/helloworld.Greeter/Chat", "bidirectional"),
    ],
)
def test_a_recipe_is_called_by_the_method_its_steps_need(name: str, path: str, kind: str) -> None:
    call = grpc_of_recipe(catalog.recipe(name))
    assert (call.path, call.kind) == (path, kind)


def test_an_upload_goes_in_pieces_and_comes_whole() -> None:
    recipe = Recipe("up", "", (ReadBody(), Body(7)), method="POST", upload_bytes=150_000)
    call = grpc_of_recipe(recipe)
    assert len(call.requests) == 3
    assert all(request.startswith(b"\n\x05world\x1a") for request in call.requests)
    assert call.replies == (hello_reply("Hello, world!", filler(7)),)
