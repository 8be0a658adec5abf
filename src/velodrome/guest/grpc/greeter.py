"""The service `helloworld.Greeter`: its methods, and by which of them a recipe is asked.

method_of(recipe).path          /helloworld.Greeter/SayHello
uploads(recipe)                 the bodies of the requests of one call
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import List, Tuple

from velodrome.guest.recipe import Body, Recipe

PROTO = Path(__file__).with_name("helloworld.proto")
"""For generators that are told a file: `--proto`."""

SERVICE = "helloworld.Greeter"

PIECE_BYTES = 64 * 1024
"""Most bytes of an upload in one message of a client's stream."""

NAME = "world"
"""Whom requests greet unless told otherwise."""

PEER = Recipe("grpc-peer", "waits as long as its request says", (Body(84),))
"""What the third party serves that recipes with `call` over gRPC ask."""


@dataclass(frozen=True)
class Method:
    """One method of the service, and which of its two directions are streams."""

    name: str
    takes_stream: bool
    gives_stream: bool

    @property
    def path(self) -> str:
        """What stands in the `:path` of a call."""
        return "/%s/%s" % (SERVICE, self.name)

    @property
    def kind(self) -> str:
        """The kind of call in grpcio's words, e.g. `unary_stream`."""
        words = {False: "unary", True: "stream"}
        return "%s_%s" % (words[self.takes_stream], words[self.gives_stream])

    def carries(self, recipe: Recipe) -> bool:
        """Whether the recipe fits: an answer in chunks needs a stream of replies, a chat streams both ways."""
        if recipe.chats:
            return self.takes_stream and self.gives_stream
        return self.gives_stream or not recipe.streams


SAY_HELLO = Method("SayHello", False, False)
SAY_HELLO_STREAM = Method("SayHelloStream", False, True)
COLLECT_HELLOS = Method("CollectHellos", True, False)
CHAT = Method("Chat", True, True)
METHODS: Tuple[Method, ...] = (SAY_HELLO, SAY_HELLO_STREAM, COLLECT_HELLOS, CHAT)


def method_of(recipe: Recipe) -> Method:
    """Return the method by which a recipe is asked: the one that its steps need."""
    if recipe.chats:
        return CHAT
    if recipe.streams:
        return SAY_HELLO_STREAM
    return COLLECT_HELLOS if recipe.reads_body else SAY_HELLO


def uploads(recipe: Recipe) -> List[bytes]:
    """Return the body of each request of one call, in order: an upload comes in pieces where it can."""
    whole = recipe.upload
    if method_of(recipe) is not COLLECT_HELLOS:
        return [whole]
    return [whole[at : at + PIECE_BYTES] for at in range(0, len(whole), PIECE_BYTES)] or [b""]


def greeting(name: str) -> str:
    """Return the message of every reply to a request with that name."""
    return "Hello, %s!" % name
