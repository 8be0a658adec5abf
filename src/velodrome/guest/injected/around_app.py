"""Treatments that stand between a server and its app: which requests reach it, when, and for how long it works."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict

from velodrome.guest.injected.giving import Giving, Treatments


def before_app(giving: Giving, wsgi: Callable[[Any], Any], asgi: Callable[[Any], Any]) -> None:
    """Have gunicorn's workers and uvicorn call what `wsgi` and `asgi` make of the app in its place."""

    def of_gunicorn(module: Any) -> None:
        before = module.Worker.load_wsgi

        def load_wsgi(self: Any) -> None:
            before(self)
            if not hasattr(self, "asgi"):
                self.wsgi = wsgi(self.wsgi)

        module.Worker.load_wsgi = load_wsgi

    giving.finder.after("gunicorn.workers.base", of_gunicorn)
    before_asgi(giving, asgi)


def before_asgi(giving: Giving, asgi: Callable[[Any], Any]) -> None:
    """Have uvicorn, and gunicorn's own worker for ASGI, call what `asgi` makes of the app in its place."""

    def replace_app(cls: Any, load: str, attribute: str) -> None:
        before = getattr(cls, load)

        def load_and_replace(self: Any) -> None:
            before(self)
            setattr(self, attribute, asgi(getattr(self, attribute)))

        setattr(cls, load, load_and_replace)

    finder = giving.finder
    finder.after("uvicorn.config", lambda module: replace_app(module.Config, "load", "loaded_app"))
    finder.after("gunicorn.workers.gasgi", lambda module: replace_app(module.ASGIWorker, "load_wsgi", "asgi"))


def _single_flight(giving: Giving, _: bool) -> None:
    """Have requests that are the same wait till the first of them is answered, and only then reach the app."""

    def asgi(app: Any) -> Any:
        import asyncio

        flying: Dict[Any, Any] = {}

        async def flight(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
                await app(scope, receive, send)
                return
            key = (scope["method"], scope["path"], scope.get("query_string"))
            if key in flying:
                giving.took("single-flight")
                await flying[key].wait()
                await app(scope, receive, send)
                return
            landed = flying[key] = asyncio.Event()
            try:
                await app(scope, receive, send)
            finally:
                if flying.get(key) is landed:
                    del flying[key]
                landed.set()

        return flight

    def wsgi(app: Any) -> Any:
        flying: Dict[Any, Any] = {}

        def flight(environ: Any, start_response: Any) -> Any:
            key = tuple(environ.get(name) for name in ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING"))
            landed = threading.Event()
            first = flying.setdefault(key, landed) if key[0] in ("GET", "HEAD") else landed
            if first is not landed:
                giving.took("single-flight")
                first.wait()
                return app(environ, start_response)
            try:
                return app(environ, start_response)
            finally:
                if flying.get(key) is landed:
                    del flying[key]
                landed.set()

        return flight

    before_app(giving, wsgi, asgi)


def _read_body(giving: Giving, _: bool) -> None:
    """Have gunicorn's workers and uvicorn read the body of a request before the app is called."""

    def wsgi(app: Any) -> Any:
        import io

        def reading(environ: Any, start_response: Any) -> Any:
            length = int(environ.get("CONTENT_LENGTH") or 0)
            if length:
                giving.took("read-body")
                environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
            return app(environ, start_response)

        return reading

    def asgi(app: Any) -> Any:
        async def reading(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            messages = [await receive()]
            while messages[-1].get("more_body"):
                giving.took("read-body")
                messages.append(await receive())

            async def again() -> Any:
                return messages.pop(0) if messages else await receive()

            await app(scope, again, send)

        return reading

    before_app(giving, wsgi, asgi)


def _cancel_on_disconnect(giving: Giving, _: bool) -> None:
    """Have uvicorn cancel the app's call when the client of an unanswered request has left."""

    def leaving(app: Any) -> Any:
        import asyncio

        async def watched(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            messages: Any = asyncio.Queue()
            state = {"answered": False, "left": False}

            async def listen() -> None:
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect" and not state["answered"]:
                        state["left"] = True
                        giving.took("cancelled")
                        call.cancel()
                        return
                    messages.put_nowait(message)
                    if message["type"] == "http.disconnect":
                        return

            async def answer(message: Any) -> None:
                # What follows the answer is work of the app's own choice.
                if message["type"] == "http.response.body" and not message.get("more_body"):
                    state["answered"] = True
                await send(message)

            call = asyncio.ensure_future(app(scope, messages.get, answer))
            listener = asyncio.ensure_future(listen())
            try:
                await call
            except asyncio.CancelledError:
                if not state["left"]:
                    raise
            finally:
                listener.cancel()

        return watched

    before_asgi(giving, leaving)


TREATMENTS: Treatments = {
    "single-flight": _single_flight,
    "read-body": _read_body,
    "cancelled": _cancel_on_disconnect,
}
