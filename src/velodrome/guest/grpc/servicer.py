"""The frame around a recipe over gRPC: a class with a method for each kind of call, in any idiom and library.

    class Servicer:
        def SayHello(self, request, context):
            <steps>
            if request.sleep_millisecond:
                sleep(request.sleep_millisecond / 1000)
            message = f'Hello, {request.name}!'
            return HelloReply(message=message, body=BODY)
        …

A method that cannot carry the recipe is not there, and answered UNIMPLEMENTED.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

from velodrome.guest.grpc.descriptor import Messages
from velodrome.guest.grpc.greeter import METHODS, Method
from velodrome.guest.recipe import Recipe, filler
from velodrome.guest.weave.compiled import compiled
from velodrome.guest.weave.steps import BAD_GATEWAY, BAD_REQUEST, SERVER_ERROR, Idiom, Lines, Weave, indented

STATUSES = {
    BAD_REQUEST: ("INVALID_ARGUMENT", "the upload is not as long as it should be"),
    SERVER_ERROR: ("INTERNAL", "the database did not give the rows"),
    BAD_GATEWAY: ("UNAVAILABLE", "the third party did not answer as it should"),
}
"""For each refusal, which HTTP numbers, the status of gRPC (a name both libraries have) and its message."""


@dataclass(frozen=True)
class Frame:
    """How one library wants its methods."""

    title: str
    """For tracebacks and profiles."""
    parameters: str
    """What follows the request, e.g. `, context`."""
    name_of: Callable[[Method], str]
    """How it writes the name of a method."""
    refuse: Callable[[str, str], Lines]
    """The lines that end a call with a status, told by name, and a message."""


def servicer(
    recipe: Recipe, upstream: str, idiom: Idiom, frame: Frame, messages: Messages, **more: Any
) -> Any:
    """Return the class `Servicer` of a recipe; `more` are names that the frame's own lines use."""
    weave = Weave(recipe, upstream, idiom, lambda status: frame.refuse(*STATUSES[status]))
    weave.names.update(HelloRequest=messages.request, HelloReply=messages.reply, sleep=idiom.sleep(), **more)
    if not (weave.streams or weave.chats):
        weave.names["BODY"] = filler(weave.size)
    lines: Lines = []
    for method in METHODS:
        if method.carries(recipe):
            lines += ["", *_method(method, weave, frame)]
    return compiled(
        "Servicer", ["class Servicer:", *indented(lines)], weave.names, "%s %s" % (frame.title, recipe.name)
    )


def _method(method: Method, weave: Weave, frame: Frame) -> Lines:
    define = "async def" if weave.idiom.wait else "def"
    each = "async for request in requests:" if weave.idiom.wait else "for request in requests:"
    head = "%s %s(self, %s%s):"
    taken = "requests" if method.takes_stream else "request"
    answer = _answer(method, weave)
    if method.takes_stream and method.gives_stream:
        body = [each, *indented([*_body(weave, "request.body"), *weave.lines, *answer])]
    elif method.takes_stream:
        body = [*_collect(each, weave), *weave.lines, *answer]
    else:
        body = [*_body(weave, "request.body"), *weave.lines, *answer]
    return [head % (define, frame.name_of(method), taken, frame.parameters), *indented(body)]


def _body(weave: Weave, expression: str) -> Lines:
    return ["body = " + expression] if weave.recipe.reads_body else []


def _collect(each: str, weave: Weave) -> Lines:
    """Return lines that take all requests; the last one's name and pause count."""
    if not weave.recipe.reads_body:
        return ["request = HelloRequest()", each, "    pass"]
    pieces = ["request, pieces = HelloRequest(), []", each, "    pieces.append(request.body)"]
    return [*pieces, *_body(weave, "b''.join(pieces)")]


def _answer(method: Method, weave: Weave) -> Lines:
    """Return the lines behind the steps: the pause that the request asks for, and the reply or replies."""
    pause = weave.waited("sleep(request.sleep_millisecond / 1000)")
    before = [
        "if request.sleep_millisecond:",
        "    " + pause,
        "message = f'Hello, {request.name}!'",
    ]
    if weave.streams:
        return [*before, *weave.over_time(["yield HelloReply(message=message, body=CHUNK)"])]
    word = "yield" if method.gives_stream else "return"
    body = "request.body" if weave.chats else "BODY"
    return [*before, "%s HelloReply(message=message, body=%s)" % (word, body)]


def raising(expression: str) -> Callable[[str, str], Lines]:
    """Return a `Frame.refuse` of one line, `expression` with `%s` for the status's name and `%r` for the message."""

    def refuse(status: str, message: str) -> Lines:
        return [expression % (status, message)]

    return refuse
