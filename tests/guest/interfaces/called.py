"""Run inside an environment of a server: call handlers of one interface, in process, and print their answers.

    python -P called.py wsgi < cases.json

A case is {"recipe": …, "upstream": …, "upload": bytes}; its answer is one line {"status", "body", "seconds"}.
Each case has a process of its own, forked, as a process has one recipe (and Django one site).
"""

import asyncio
import importlib
import io
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from wsgiref.util import setup_testing_defaults

from velodrome.guest.codegen.steps import HandlerCode
from velodrome.guest.recipe import Recipe, Step, filler, from_plain

Answer = tuple[int, bytes]


def call_wsgi(app: Any, recipe: Recipe, upload: bytes) -> Answer:
    heads: list[tuple[str, list[tuple[str, str]]]] = []
    environ: dict[str, Any] = {"REQUEST_METHOD": recipe.method, "PATH_INFO": "/"}
    setup_testing_defaults(environ)
    environ.update({"wsgi.input": io.BytesIO(upload), "CONTENT_LENGTH": str(len(upload)) if upload else ""})
    answer = app(environ, lambda status, headers: heads.append((status, headers)))
    body = b"".join(answer)
    if hasattr(answer, "close"):
        answer.close()
    [(status, headers)] = heads
    agrees({name.lower(): value for name, value in headers}, body)
    return int(status.split()[0]), body


def on_asyncio(app: Any, *arguments: Any) -> None:
    asyncio.run(app(*arguments))


def on_trio(app: Any, *arguments: Any) -> None:
    import trio  # noqa: PLC0415 - only in its environment

    trio.run(app, *arguments)


def call_asgi(app: Any, recipe: Recipe, upload: bytes, run: Callable[..., None] = on_asyncio) -> Answer:
    sent: list[dict[str, Any]] = []
    pieces = [upload[at : at + 65536] for at in range(0, len(upload), 65536)] or [b""]
    messages = [{"type": "http.request", "body": p, "more_body": p is not pieces[-1]} for p in pieces]

    async def receive() -> Any:
        if messages:
            return messages.pop(0)
        return await asyncio.get_running_loop().create_future()

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1",
        "scheme": "http", "method": recipe.method, "path": "/", "raw_path": b"/",
        "query_string": b"", "root_path": "",
        "headers": [(b"host", b"localhost"), (b"content-length", str(len(upload)).encode())],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80),
    }  # fmt: skip
    run(app, scope, receive, send)
    start, *bodies = sent
    assert start["type"] == "http.response.start", start
    assert not bodies[-1].get("more_body"), "the answer is not ended"
    body = b"".join(message.get("body", b"") for message in bodies)
    agrees({name.decode().lower(): value.decode() for name, value in start["headers"]}, body)
    return start["status"], body


def call_asgi_trio(app: Any, recipe: Recipe, upload: bytes) -> Answer:
    return call_asgi(app, recipe, upload, on_trio)


def call_rsgi(app: Any, recipe: Recipe, upload: bytes) -> Answer:
    answers: list[tuple[int, list[tuple[str, str]]]] = []
    body: list[bytes] = []

    class Transport:
        async def send_bytes(self, data: bytes) -> None:
            body.append(data)

    class Protocol:
        async def __call__(self) -> bytes:
            return upload

        def response_empty(self, status: int, headers: Any) -> None:
            answers.append((status, headers))

        def response_bytes(self, status: int, headers: Any, data: bytes) -> None:
            answers.append((status, headers))
            body.append(data)

        def response_stream(self, status: int, headers: Any) -> Transport:
            answers.append((status, headers))
            return Transport()

    asyncio.run(app(None, Protocol()))
    [(status, headers)] = answers
    agrees(dict(headers), b"".join(body))
    return status, b"".join(body)


def agrees(headers: dict[str, str], body: bytes) -> None:
    """Check a Content-Length, where there is one."""
    if "content-length" in headers:
        assert int(headers["content-length"]) == len(body), headers


def call_socket(converse: Any, recipe: Recipe, upload: bytes) -> Answer:
    ours, theirs = socket.socketpair()
    with ours:
        threading.Thread(target=converse, args=(theirs, True), daemon=True).start()
        connection = HTTPConnection("localhost")
        connection.sock = ours
        return over(connection, recipe, upload)


def call_generators(converse: Any, recipe: Recipe, upload: bytes) -> Answer:
    from velodrome.guest.raw.coroutines import Talk, Trampoline  # noqa: PLC0415 - as a server would

    def serve(theirs: socket.socket) -> None:
        trampoline = Trampoline()
        trampoline.start(converse(Talk(theirs)))
        trampoline.run()

    return over_pair(serve, recipe, upload)


def call_greenlets(converse: Any, recipe: Recipe, upload: bytes) -> Answer:
    from velodrome.guest.raw.coroutines import Attended, hub  # noqa: PLC0415 - needs greenlet

    def serve(theirs: socket.socket) -> None:
        hub().start(converse, Attended(theirs), True)
        hub().run()

    return over_pair(serve, recipe, upload)


def over_pair(serve: Callable[[socket.socket], None], recipe: Recipe, upload: bytes) -> Answer:
    """Call over a pair of sockets what serves one that does not block, for ever."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    threading.Thread(target=serve, args=(theirs,), daemon=True).start()
    connection = HTTPConnection("localhost")
    connection.sock = ours
    return over(connection, recipe, upload)


def call_published(app: Any, recipe: Recipe, upload: bytes) -> Answer:
    ours, theirs = socket.socketpair()

    def send(answer: bytes) -> None:
        with theirs:
            theirs.sendall(answer)

    answer = app(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    threading.Thread(target=send, args=(answer,), daemon=True).start()
    with ours:
        response = HTTPResponse(ours)
        response.begin()
        return response.status, response.read()


def call_events(handler: Any, recipe: Recipe, upload: bytes) -> Answer:
    from velodrome.guest.raw.connection import Dialogue  # noqa: PLC0415 - as a server would

    class Written(Dialogue):
        """Called with one request; what it sends goes at once."""

        def sendall(self, data: bytes) -> None:
            theirs.sendall(data)

    ours, theirs = socket.socketpair()
    with ours, theirs:
        head = f"{recipe.method} / HTTP/1.1\r\nContent-Length: {len(upload)}\r\n\r\n".encode()
        threading.Thread(target=Written(handler).arrived, args=(head + upload,), daemon=True).start()
        response = HTTPResponse(ours)
        response.begin()
        return response.status, response.read()


def over(connection: HTTPConnection, recipe: Recipe, upload: bytes) -> Answer:
    """Send a request on a connection and return the answer to it."""
    connection.request(recipe.method, "/", upload or None)
    response: HTTPResponse = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, body


def call_served(start: Callable[[Any], Any]) -> Callable[[Any, Recipe, bytes], Answer]:
    """Return a caller for what only its own server can call; `start` listens and returns the port."""

    def call(app: Any, recipe: Recipe, upload: bytes) -> Answer:
        async def meet() -> Answer:
            port = await start(app)
            exchange = lambda: over(HTTPConnection("127.0.0.1", port, timeout=20), recipe, upload)  # noqa: E731
            return await asyncio.get_running_loop().run_in_executor(None, exchange)

        return asyncio.run(meet())

    return call


def call_program(start: Callable[[Any, int], None]) -> Callable[[Any, Recipe, bytes], Answer]:
    """Return a caller for what its server runs for ever, in a process of its own."""

    def call(app: Any, recipe: Recipe, upload: bytes) -> Answer:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = int(free.getsockname()[1])
        pid = os.fork()
        if pid == 0:
            start(app, port)
            os._exit(0)
        try:
            until = time.monotonic() + 20
            while True:
                try:
                    return over(HTTPConnection("127.0.0.1", port, timeout=20), recipe, upload)
                except ConnectionRefusedError:
                    if time.monotonic() > until:
                        raise
                    time.sleep(0.02)
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    return call


def start_sanic(app: Any, port: int) -> None:
    app.run("127.0.0.1", port, single_process=True, access_log=False, motd=False)


def start_robyn(app: Any, port: int) -> None:
    app.start("127.0.0.1", port, _check_port=False)


async def start_streams(converse: Any) -> int:
    server = await asyncio.start_server(converse, "127.0.0.1", 0)
    return int(server.sockets[0].getsockname()[1])


async def start_aiohttp(app: Any) -> int:
    from aiohttp.web import AppRunner, TCPSite  # noqa: PLC0415 - only in its environment

    runner = AppRunner(app)
    await runner.setup()
    await TCPSite(runner, "127.0.0.1", 0).start()
    return int(runner.addresses[0][1])


async def start_tornado(app: Any) -> int:
    from tornado.httpserver import HTTPServer  # noqa: PLC0415 - only in its environment
    from tornado.netutil import bind_sockets  # noqa: PLC0415 - only in its environment

    sockets = bind_sockets(0, "127.0.0.1")
    HTTPServer(app).add_sockets(sockets)
    return int(sockets[0].getsockname()[1])


CALLERS: dict[str, Callable[[Any, Recipe, bytes], Answer]] = {
    "wsgi": call_wsgi,
    "flask": call_wsgi,
    "django_wsgi": call_wsgi,
    "asgi": call_asgi,
    "starlette": call_asgi,
    "fastapi": call_asgi,
    "django_asgi": call_asgi,
    "asgi_trio": call_asgi_trio,
    "sanic": call_program(start_sanic),
    "robyn": call_program(start_robyn),
    "rsgi": call_rsgi,
    "socket_blocking": call_socket,
    "socket_asyncio": call_served(start_streams),
    "published": call_published,
    "published_teaching": call_published,
    "socket_events": call_events,
    "socket_generators": call_generators,
    "socket_greenlets": call_greenlets,
    "aiohttp": call_served(start_aiohttp),
    "tornado": call_served(start_tornado),
    "tornado_curl": call_served(start_tornado),
    "tornado_gen": call_served(start_tornado),
}


def built(module: Any, recipe: Recipe, upstream: str) -> Any:
    """Return the handler of a recipe, after a look at whether it waits as its interface says."""
    waits: list[str] = []
    spelled = HandlerCode._spell  # what every step goes through, whoever frames it

    def seen(code: HandlerCode, step: Step) -> list[str]:
        waits.append(code.idiom.wait)
        return spelled(code, step)

    HandlerCode._spell = seen  # type: ignore[method-assign, assignment]
    app = module.build(recipe, upstream)
    tasks = {"await ", "yield "}  # with "yield from " no loop of asyncio's is there for a client that awaits
    assert all((wait in tasks) == module.interface.awaits for wait in waits), "say `awaits` as it is"
    return app


def answer(interface: str, case: dict[str, Any]) -> dict[str, Any]:
    """Build the handler of a case, call it, and tell the answer."""
    recipe = from_plain(case["recipe"])
    module = importlib.import_module("velodrome.guest.interfaces." + interface)
    app = built(module, recipe, case["upstream"])
    started = time.monotonic()
    status, body = CALLERS[interface](app, recipe, filler(case["upload"]))
    seconds = time.monotonic() - started
    right = body == module.interface.answer(recipe)
    return {"status": status, "length": len(body), "right": right, "seconds": seconds}


def main() -> None:
    for case in json.load(sys.stdin):
        pid = os.fork()
        if pid == 0:
            print(json.dumps(answer(sys.argv[1], case)), flush=True)
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            print(json.dumps({"status": 0, "length": 0, "right": False, "seconds": 0.0}), flush=True)


if __name__ == "__main__":
    main()
