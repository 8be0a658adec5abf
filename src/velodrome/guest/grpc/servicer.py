"""The frame around a recipe over gRPC: a class with a method for each kind of call, in any idiom and library.

    class Servicer:
        def SayHello(self, request, context):
            <steps>
            if request.sleep_millisecond:
                sleep(request.sleep_millisecond / 1000)
            message = f'Hello, {request.name}!'
            return HelloReply(message=message, body=BODY)
        …

A method that cannot carry the recipe is not there, and answered UNIMPLEMENTED. `adds` and `service` hand a servicer to
grpcio and to grpclib, as their generated code does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Awaitable, Callable, Dict

from velodrome.guest.codegen.steps import (
    BAD_GATEWAY,
    BAD_REQUEST,
    SERVER_ERROR,
    HandlerCode,
    Idiom,
    Lines,
    compile_lines,
    indent,
)
from velodrome.guest.grpc.greeter import METHODS, SERVICE, Messages, Method
from velodrome.guest.recipe import Recipe, filler

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
    """The lines that end a call with a status, by its name, and a message."""


def servicer(
    recipe: Recipe, upstream: str, idiom: Idiom, frame: Frame, messages: Messages, **more: Any
) -> Any:
    """Return the class `Servicer` of a recipe; `more` are names that the frame's own lines use."""
    code = HandlerCode(recipe, upstream, idiom, lambda status: frame.refuse(*STATUSES[status]))
    code.names.update(HelloRequest=messages.request, HelloReply=messages.reply, sleep=idiom.sleep(), **more)
    if not (code.streams or code.chats):
        code.names["BODY"] = filler(code.size)
    lines: Lines = []
    for method in METHODS:
        if method.supports(recipe):
            lines += ["", *_method(method, code, frame)]
    return compile_lines(
        "Servicer", ["class Servicer:", *indent(lines)], code.names, "%s %s" % (frame.title, recipe.name)
    )


def _method(method: Method, code: HandlerCode, frame: Frame) -> Lines:
    define = "async def" if code.idiom.wait else "def"
    loop = "async for request in requests:" if code.idiom.wait else "for request in requests:"
    head = "%s %s(self, %s%s):"
    taken = "requests" if method.takes_stream else "request"
    answer = _answer(method, code)
    if method.takes_stream and method.gives_stream:
        body = [loop, *indent([*_body(code, "request.body"), *code.lines, *answer])]
    elif method.takes_stream:
        body = [*_collect(loop, code), *code.lines, *answer]
    else:
        body = [*_body(code, "request.body"), *code.lines, *answer]
    return [head % (define, frame.name_of(method), taken, frame.parameters), *indent(body)]


def _body(code: HandlerCode, expression: str) -> Lines:
    return ["body = " + expression] if code.recipe.reads_body else []


def _collect(loop: str, code: HandlerCode) -> Lines:
    """Return lines that take all requests; the name and the pause of the last count."""
    if not code.recipe.reads_body:
        return ["request = HelloRequest()", loop, "    pass"]
    pieces = ["request, pieces = HelloRequest(), []", loop, "    pieces.append(request.body)"]
    return [*pieces, *_body(code, "b''.join(pieces)")]


def _answer(method: Method, code: HandlerCode) -> Lines:
    """Return the lines behind the steps: the pause that the request asks for, and the reply or replies."""
    pause = code.waited("sleep(request.sleep_millisecond / 1000)")
    before = [
        "if request.sleep_millisecond:",
        "    " + pause,
        "message = f'Hello, {request.name}!'",
    ]
    if code.streams:
        return [*before, *code.over_time(["yield HelloReply(message=message, body=CHUNK)"])]
    word = "yield" if method.gives_stream else "return"
    body = "request.body" if code.chats else "BODY"
    return [*before, "%s HelloReply(message=message, body=%s)" % (word, body)]


def raising(expression: str) -> Callable[[str, str], Lines]:
    """Return a `Frame.refuse` of one line, `expression` with `%s` for the status's name and `%r` for the message."""

    def refuse(status: str, message: str) -> Lines:
        return [expression % (status, message)]

    return refuse


def adds(servicer: Any, messages: Messages) -> Callable[[Any], None]:
    """Return `add(server)`, for `grpc.server` and `grpc.aio.server` alike. Needs grpcio installed."""
    import grpc

    handlers = {}
    for method in METHODS:
        behaviour = getattr(servicer, method.name, None)
        if behaviour is not None:
            made = getattr(grpc, method.kind + "_rpc_method_handler")
            handlers[method.name] = made(
                behaviour,
                request_deserializer=messages.request.FromString,
                response_serializer=messages.reply.SerializeToString,
            )

    def add(server: Any) -> None:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        if hasattr(server, "add_registered_method_handlers"):  # since 1.63
            server.add_registered_method_handlers(SERVICE, handlers)

    return add


Rpc = Callable[[Any], Awaitable[None]]


def snake_case(method: Method) -> str:
    """Return the name of a method as betterproto writes it, e.g. `say_hello`."""
    parts = ("_" + letter.lower() if letter.isupper() else letter for letter in method.name)
    return "".join(parts).lstrip("_")


def service(servicer: Any, messages: Messages) -> Any:
    """Return what `grpclib.server.Server` serves. Needs grpclib and betterproto installed."""
    from betterproto.grpc.grpclib_server import ServiceBase
    from grpclib.const import Cardinality, Handler

    class GreeterBase(ServiceBase):  # type: ignore[misc]  # it is Any where it is not installed
        def __mapping__(self) -> Dict[str, Any]:
            mapping = {}
            for method in METHODS:
                behaviour = getattr(servicer, snake_case(method), None)
                rpc = _unimplemented if behaviour is None else _rpc(method, behaviour, self)
                cardinality = Cardinality[method.kind.upper()]
                mapping[method.path] = Handler(rpc, cardinality, messages.request, messages.reply)
            return mapping

    return GreeterBase()


async def _unimplemented(stream: Any) -> None:
    # As the plugin's base class does: grpclib's own refusal lacks a header, and its client cannot read it.
    from grpclib.const import Status
    from grpclib.exceptions import GRPCError

    raise GRPCError(Status.UNIMPLEMENTED)


def _rpc(method: Method, behaviour: Any, base: Any) -> Rpc:
    """Return what grpclib calls with a stream: it takes requests off it and puts replies on it."""

    async def one_to_one(stream: Any) -> None:
        await stream.send_message(await behaviour(await stream.recv_message()))

    async def one_to_many(stream: Any) -> None:
        request = await stream.recv_message()
        await base._call_rpc_handler_server_stream(behaviour, stream, request)

    async def many_to_one(stream: Any) -> None:
        await stream.send_message(await behaviour(stream.__aiter__()))

    async def many_to_many(stream: Any) -> None:
        await base._call_rpc_handler_server_stream(behaviour, stream, stream.__aiter__())

    if method.takes_stream:
        return many_to_many if method.gives_stream else many_to_one
    return one_to_many if method.gives_stream else one_to_one
