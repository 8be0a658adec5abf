"""`hello` written by hand for each interface, timed beside velodrome's; run inside a server's environment.

    python -P hand_written.py asgi          prints {"hand_us": …, "ratios": […]}

Both are called in this process, in turn, block by block: a drift of the machine hits both alike. What is
called is as little beside the handler as the interface allows; where a handler needs its server's own
objects (Tornado, sockets, streams), both get requests over a connection and that cost is in both.
"""

import asyncio
import importlib
import json
import socket
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any
from wsgiref.util import setup_testing_defaults

from velodrome.guest.codegen.wire import answers
from velodrome.guest.services.hello import recipe

UNWRITTEN = "nothing is written by hand to compare it with"
"""What it says of interfaces that it has no handler for."""
BLOCK_S = 0.01
PAIRS = 150
BODY = recipe.answer()
TYPE = "text/html; charset=utf-8"
WIRE, CLOSING = answers(recipe)
REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\r\n"
SCOPE = {
    "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
    "path": "/", "raw_path": b"/", "query_string": b"", "root_path": "", "headers": [(b"host", b"a")],
    "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
}  # fmt: skip
Block = Callable[[int], float]  # does so many requests and returns the seconds they took


def block_of(call: Callable[[], object]) -> Block:
    def block(count: int) -> float:
        started = time.perf_counter()
        for _ in range(count):
            call()
        return time.perf_counter() - started

    return block


def awaited(loop: asyncio.AbstractEventLoop, call: Callable[[], Awaitable[object]]) -> Block:
    async def several(count: int) -> float:
        started = time.perf_counter()
        for _ in range(count):
            await call()
        return time.perf_counter() - started

    return lambda count: loop.run_until_complete(several(count))


def wsgi(build: Any, loop: Any) -> tuple[Block, Block]:
    def app(environ: Any, start_response: Any) -> Any:
        start_response("200 OK", [("Content-Type", TYPE), ("Content-Length", "84")])
        return [BODY]

    return called_by_wsgi(build(recipe, "")), called_by_wsgi(app)


def called_by_wsgi(app: Any) -> Block:
    environ: dict[str, Any] = {"PATH_INFO": "/"}
    setup_testing_defaults(environ)

    def start_response(status: str, headers: Any, exc_info: Any = None) -> None:
        pass

    return block_of(lambda: b"".join(app(dict(environ), start_response)))


def called_by_asgi(loop: Any, app: Any) -> Block:
    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        pass

    return awaited(loop, lambda: app(dict(SCOPE), receive, send))


def asgi(build: Any, loop: Any) -> tuple[Block, Block]:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", b"84")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": BODY})

    return called_by_asgi(loop, build(recipe, "")), called_by_asgi(loop, app)


def rsgi(build: Any, loop: Any) -> tuple[Block, Block]:
    async def app(scope: Any, protocol: Any) -> None:
        protocol.response_bytes(200, [("content-type", TYPE), ("content-length", "84")], BODY)

    class Protocol:
        def response_bytes(self, status: int, headers: Any, body: bytes) -> None:
            pass

    ours, protocol = build(recipe, ""), Protocol()
    return awaited(loop, lambda: ours(None, protocol)), awaited(loop, lambda: app(None, protocol))


def flask(build: Any, loop: Any) -> tuple[Block, Block]:
    from flask import Flask, Response  # noqa: PLC0415

    app = Flask("hand_written", static_folder=None)

    @app.get("/")
    def view() -> Any:
        return Response(BODY, content_type=TYPE)

    return called_by_wsgi(build(recipe, "")), called_by_wsgi(app)


def starlette(build: Any, loop: Any) -> tuple[Block, Block]:
    from starlette.applications import Starlette  # noqa: PLC0415
    from starlette.responses import HTMLResponse  # noqa: PLC0415
    from starlette.routing import Route  # noqa: PLC0415

    async def endpoint(request: Any) -> Any:
        return HTMLResponse(BODY)

    app = Starlette(routes=[Route("/", endpoint)])
    return called_by_asgi(loop, build(recipe, "")), called_by_asgi(loop, app)


def fastapi(build: Any, loop: Any) -> tuple[Block, Block]:
    from fastapi import FastAPI  # noqa: PLC0415
    from fastapi.responses import HTMLResponse  # noqa: PLC0415

    app = FastAPI(openapi_url=None)

    @app.get("/")
    async def endpoint() -> HTMLResponse:
        return HTMLResponse(BODY)

    return called_by_asgi(loop, build(recipe, "")), called_by_asgi(loop, app)


def django_views(build: Any) -> tuple[Any, Any, Any]:
    """Return our view, Django's response class and a request; two sites in a process cannot be."""
    build(recipe, "")
    from django.conf import settings  # noqa: PLC0415
    from django.http import HttpResponse  # noqa: PLC0415
    from django.test import RequestFactory  # noqa: PLC0415

    return settings.ROOT_URLCONF[0].callback, HttpResponse, RequestFactory().get("/")


def django_wsgi(build: Any, loop: Any) -> tuple[Block, Block]:
    ours, response, request = django_views(build)

    def view(request: Any) -> Any:
        return response(BODY, headers={"Content-Type": TYPE, "Content-Length": "84"})

    return block_of(lambda: ours(request)), block_of(lambda: view(request))


def django_asgi(build: Any, loop: Any) -> tuple[Block, Block]:
    ours, response, request = django_views(build)

    async def view(request: Any) -> Any:
        return response(BODY, headers={"Content-Type": TYPE, "Content-Length": "84"})

    return awaited(loop, lambda: ours(request)), awaited(loop, lambda: view(request))


def aiohttp(build: Any, loop: Any) -> tuple[Block, Block]:
    from aiohttp import web  # noqa: PLC0415

    async def endpoint(request: Any) -> Any:
        return web.Response(body=BODY, headers={"Content-Type": TYPE})

    [route] = build(recipe, "").router.routes()
    ours = route.handler
    return awaited(loop, lambda: ours(None)), awaited(loop, lambda: endpoint(None))


def tornado(build: Any, loop: Any) -> tuple[Block, Block]:
    from tornado.httpserver import HTTPServer  # noqa: PLC0415
    from tornado.netutil import bind_sockets  # noqa: PLC0415
    from tornado.web import Application, RequestHandler  # noqa: PLC0415

    class Endpoint(RequestHandler):  # type: ignore[misc]
        async def get(self) -> None:
            self.set_header("Content-Type", TYPE)
            self.write(BODY)

    async def served(app: Any) -> Block:
        sockets = bind_sockets(0, "127.0.0.1")
        HTTPServer(app).add_sockets(sockets)
        return await over_a_connection(loop, sockets[0].getsockname()[1], BODY[-26:])

    hand = Application([("/", Endpoint)], log_function=lambda handler: None)
    return loop.run_until_complete(served(build(recipe, ""))), loop.run_until_complete(served(hand))


def understood(head: bytes) -> tuple[int, bool]:
    """Return the length of a request's body and whether its connection ends: the least to be read."""
    lowered = head.lower()
    closing = b"connection: close" in lowered or b"HTTP/1.0" in head
    _, found, rest = lowered.partition(b"content-length:")
    return (int(rest.partition(b"\r\n")[0]) if found else 0), closing


def socket_asyncio(build: Any, loop: Any) -> tuple[Block, Block]:
    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                length, closing = understood(await reader.readuntil(b"\r\n\r\n"))
                if length:
                    await reader.readexactly(length)
                writer.write(CLOSING if closing else WIRE)
                await writer.drain()
                if closing:
                    break
        except (asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.close()

    async def served(handler: Any) -> Block:
        server = await asyncio.start_server(handler, "127.0.0.1", 0)
        return await over_a_connection(loop, server.sockets[0].getsockname()[1], WIRE[-26:])

    return loop.run_until_complete(served(build(recipe, ""))), loop.run_until_complete(served(converse))


async def over_a_connection(loop: Any, port: int, ending: bytes) -> Block:
    """Return a block that asks on one kept connection, from the server's own loop."""
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setblocking(False)

    async def ask() -> None:
        await loop.sock_sendall(connection, REQUEST)
        received = b""
        while not received.endswith(ending):
            received += await loop.sock_recv(connection, 65536)

    return awaited(loop, ask)


def socket_blocking(build: Any, loop: Any) -> tuple[Block, Block]:
    def converse(connection: socket.socket, keep: bool) -> None:
        received = b""
        while True:
            while b"\r\n\r\n" not in received:
                received += connection.recv(65536)
            head, _, received = received.partition(b"\r\n\r\n")
            length, closing = understood(head)
            while len(received) < length:
                received += connection.recv(65536)
            received = received[length:]
            connection.sendall(CLOSING if closing or not keep else WIRE)
            if closing or not keep:
                return

    def asked(handler: Any) -> Block:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = socket.create_connection(listener.getsockname())
            server, _ = listener.accept()

        def ask() -> None:
            client.sendall(REQUEST)
            handler(server, False)
            client.recv(65536)

        return block_of(ask)

    return asked(build(recipe, "")), asked(converse)


class Registered:
    """Stands for a server of grpcio: keeps the handlers that it is given."""

    def add_generic_rpc_handlers(self, handlers: Any) -> None:
        pass

    def add_registered_method_handlers(self, service: str, handlers: Any) -> None:
        self.handlers = handlers


def grpc(build: Any, loop: Any) -> tuple[Block, Block]:
    from velodrome.guest.grpc.greeter import protobuf_messages  # noqa: PLC0415 - in its environment

    messages = protobuf_messages()

    class Greeter:
        def SayHello(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
            if request.sleep_millisecond:
                time.sleep(request.sleep_millisecond / 1000)
            return messages.reply(message=f"Hello, {request.name}!", body=BODY)

    ours, hand, request = said_hello(build), Greeter().SayHello, messages.request(name="world")
    return block_of(lambda: ours(request, None)), block_of(lambda: hand(request, None))


def grpc_aio(build: Any, loop: Any) -> tuple[Block, Block]:
    from velodrome.guest.grpc.greeter import protobuf_messages  # noqa: PLC0415 - in its environment

    messages = protobuf_messages()

    class Greeter:
        async def SayHello(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
            if request.sleep_millisecond:
                await asyncio.sleep(request.sleep_millisecond / 1000)
            return messages.reply(message=f"Hello, {request.name}!", body=BODY)

    ours, hand, request = said_hello(build), Greeter().SayHello, messages.request(name="world")
    return awaited(loop, lambda: ours(request, None)), awaited(loop, lambda: hand(request, None))


def said_hello(build: Any) -> Any:
    """Return our method `SayHello`."""
    server = Registered()
    build(recipe, "")(server)
    return server.handlers["SayHello"].unary_unary


def grpclib(build: Any, loop: Any) -> tuple[Block, Block]:
    import velodrome.guest.grpc.greeter as library  # noqa: PLC0415 - in its environment

    messages = library.betterproto_messages()
    request = messages.request(name="world")

    class Stream:
        async def recv_message(self) -> Any:
            return request

        async def send_message(self, reply: Any) -> None:
            pass

    async def say_hello(stream: Any) -> None:
        request = await stream.recv_message()
        if request.sleep_millisecond:
            await asyncio.sleep(request.sleep_millisecond / 1000)
        await stream.send_message(messages.reply(message=f"Hello, {request.name}!", body=BODY))

    ours, stream = build(recipe, "").__mapping__()["/helloworld.Greeter/SayHello"].func, Stream()
    return awaited(loop, lambda: ours(stream)), awaited(loop, lambda: say_hello(stream))


def compared(ours: Block, hand: Block) -> dict[str, Any]:
    """Return the time of the hand-written one and the ratios ours / hand, pair by pair, in turn."""
    count = 1
    while hand(count) < BLOCK_S:
        count *= 2
    ours(count)
    ratios, times = [], []
    for pair in range(PAIRS):
        if pair % 2:
            first, second = ours(count), hand(count)
        else:
            second, first = hand(count), ours(count)
        ratios.append(first / second)
        times.append(second / count)
    return {"hand_us": statistics.median(times) * 1e6, "ratios": ratios}


if __name__ == "__main__":
    if sys.argv[1] not in globals():
        sys.exit(UNWRITTEN)
    handlers = importlib.import_module("velodrome.guest.interfaces." + sys.argv[1])
    print(json.dumps(compared(*globals()[sys.argv[1]](handlers.build, asyncio.new_event_loop()))))
