"""Tornado, the old school: a request handler's `@gen.coroutine` method, a generator that yields what it waits for."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from velodrome.guest.codegen.idioms import TIMEOUT_S
from velodrome.guest.interface import Interface, lazily
from velodrome.guest.interfaces.tornado import TORNADO, TornadoAwaiting, application
from velodrome.guest.recipe import Recipe, served_here

interface = Interface(
    "tornado_gen",
    "a Tornado handler's generator, which yields futures to a runner",
    requires=(TORNADO,),
    chats=True,
    awaits=True,
)


class TornadoYielding(TornadoAwaiting):
    """As before `async def`: every wait is yielded, and each coroutine is a generator with a runner.

    `@gen.coroutine` makes a `Future` and a `Runner` for each call; the loop resumes the runner when what it yielded
    is done, so a chain of such coroutines passes the scheduler once for each link.
    """

    wait = "yield "

    def ask(self, upstream: str) -> Callable[[str], Any]:
        """Return a generator coroutine over the client of the running loop."""
        from tornado import gen
        from tornado.httpclient import AsyncHTTPClient, HTTPClientError

        self.configure()

        @gen.coroutine  # type: ignore[untyped-decorator]
        def ask(url: str) -> Any:
            try:
                answer = yield AsyncHTTPClient().fetch(url, raise_error=False, request_timeout=TIMEOUT_S)
            except (HTTPClientError, OSError):
                return 0
            return int(answer.code)

        return ask  # type: ignore[no-any-return]

    def ask_all(self, ask: Callable[[str], Any]) -> Callable[[Sequence[str]], Any]:
        """Return a generator coroutine that yields a list: Tornado waits for all in it."""
        from tornado import gen

        @gen.coroutine  # type: ignore[untyped-decorator]
        def ask_all(urls: Sequence[str]) -> Any:
            return (yield [ask(url) for url in urls])

        return ask_all  # type: ignore[no-any-return]

    def at_once(self, branches: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
        """Return a generator coroutine that yields a list of branches, each a coroutine with a runner of its own."""
        from tornado import gen

        started = [gen.coroutine(branch) for branch in branches]

        @gen.coroutine  # type: ignore[untyped-decorator]
        def at_once() -> Any:
            return (yield [branch() for branch in started])

        return at_once  # type: ignore[no-any-return]


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the Tornado application of a recipe. Needs Tornado installed."""
    from tornado import gen

    return application(recipe, upstream, TornadoYielding(), "def", gen.coroutine)


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
