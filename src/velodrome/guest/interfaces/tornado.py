"""Tornado: a request handler's coroutine method, called by Tornado's own server."""

from __future__ import annotations

from typing import Any, Callable, Sequence, Set

from velodrome.guest.codegen.idioms import CONNECTIONS, TIMEOUT_S, Awaiting
from velodrome.guest.codegen.steps import CONTENT_TYPE, HandlerCode, Lines, compile_lines, indent
from velodrome.guest.interface import Interface, lazily
from velodrome.guest.recipe import Recipe, filler, served_here

TORNADO = "tornado==6.6.1"

interface = Interface(
    "tornado",
    "a Tornado handler's coroutine, which awaits",
    requires=(TORNADO,),
    chats=True,
    awaits=True,
    apps=True,
)


class TornadoAwaiting(Awaiting):
    """Tornado's own means: `gen.sleep`, `gen.multi` and its default client, `SimpleAsyncHTTPClient`.

    That client opens a new connection for each call and keeps none; with its default of ten calls at
    once (`max_clients`) every further one would queue, so it is raised.
    """

    def sleep(self) -> Callable[[float], Any]:
        """Return `gen.sleep`."""
        from tornado.gen import sleep

        return sleep  # type: ignore[no-any-return]

    def ask(self, upstream: str) -> Callable[[str], Any]:
        """Return a coroutine function over the client of the running loop."""
        from tornado.httpclient import AsyncHTTPClient, HTTPClientError

        self.configure()

        async def ask(url: str) -> int:
            try:
                answer = await AsyncHTTPClient().fetch(url, raise_error=False, request_timeout=TIMEOUT_S)
            except (HTTPClientError, OSError):
                return 0
            return int(answer.code)

        return ask

    @staticmethod
    def configure() -> None:
        """Let the default client make as many calls at once as there are requests."""
        from tornado.httpclient import AsyncHTTPClient

        AsyncHTTPClient.configure("tornado.simple_httpclient.SimpleAsyncHTTPClient", max_clients=CONNECTIONS)

    def ask_all(self, ask: Callable[[str], Any]) -> Callable[[Sequence[str]], Any]:
        """Return a coroutine function that waits for all answers."""
        from tornado.gen import multi

        async def ask_all(urls: Sequence[str]) -> Any:
            return await multi([ask(url) for url in urls])

        return ask_all

    def at_once(self, branches: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
        """Return a coroutine function that waits for all branches."""
        from tornado.gen import multi

        async def at_once() -> Any:
            return await multi([branch() for branch in branches])

        return at_once


def refuse(status: int) -> Lines:
    """Return the lines that answer `status` with an empty body."""
    return ["self.set_status(%d)" % status, "return"]


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the Tornado application of a recipe. Needs Tornado installed."""
    return application(recipe, upstream, TornadoAwaiting(), "async def")


def application(
    recipe: Recipe,
    upstream: str,
    idiom: TornadoAwaiting,
    define: str,
    decorate: Callable[[Any], Any] = lambda function: function,
) -> Any:
    """Return the Tornado application of a recipe whose handler's method is defined and decorated by the arguments."""
    from tornado.web import Application, RequestHandler

    code = HandlerCode(recipe, upstream, idiom, refuse, ("body = self.request.body",))
    if code.chats:
        return _chat(code, define, decorate)
    if code.streams:
        end = code.over_time(["self.write(CHUNK)", code.waited("self.flush()")])
    else:
        end = ["self.finish(BODY)"]
        code.names["BODY"] = filler(code.size)
    head = ["self.set_header('Content-Type', %r)" % CONTENT_TYPE]
    method = recipe.method.lower()
    lines = ["%s %s(self):" % (define, method), *indent([*code.lines, *head, *end])]
    handle = compile_lines(method, lines, code.names, "tornado " + recipe.name)
    endpoint = type("Endpoint", (RequestHandler,), {method: decorate(handle)})
    # Tornado has no switch for its log of requests: a function that logs none.
    return Application([("/", endpoint)], log_function=lambda handler: None)


def _chat(code: HandlerCode, define: str, decorate: Callable[[Any], Any]) -> Any:
    """Return an application whose handler holds WebSockets."""
    from tornado.web import Application
    from tornado.websocket import WebSocketClosedError, WebSocketHandler

    members: Set[Any] = set()
    code.names.update(members=members, WebSocketClosedError=WebSocketClosedError)
    receivers = "tuple(members)" if code.to_room else "(self,)"
    lines = [
        "%s on_message(self, message):" % define,
        *indent(code.lines),
        "    binary = isinstance(message, bytes)",
        "    for member in %s:" % receivers,
        "        try:",
        "            member.write_message(message, binary)",
        "        except WebSocketClosedError:",
        "            pass",
    ]
    if define == "def":  # a generator, whether or not a step waits
        lines.append("    yield []")
    handle = decorate(compile_lines("on_message", lines, code.names, "tornado " + code.recipe.name))

    class Endpoint(WebSocketHandler):  # type: ignore[misc]
        """One member."""

        on_message = handle

        def open(self) -> None:
            """Let it in."""
            members.add(self)

        def on_close(self) -> None:
            """Let it go."""
            members.discard(self)

    return Application([("/", Endpoint)], log_function=lambda handler: None)


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
