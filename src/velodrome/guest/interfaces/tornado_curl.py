"""Tornado whose handlers ask the third party through libcurl instead of Tornado's default client."""

from __future__ import annotations

from typing import Any

from velodrome.guest.interface import Interface, lazily
from velodrome.guest.interfaces.tornado import TORNADO, TornadoAwaiting, application
from velodrome.guest.recipe import Recipe, served_here

interface = Interface(
    "tornado_curl",
    "a Tornado handler's coroutine, which awaits libcurl",
    requires=(TORNADO, "pycurl==7.49.0"),
    chats=True,
    awaits=True,
)

CLIENTS = 1000
"""Calls at once. The client makes all its handles when it is made, some 20 kB each, and not as they are needed."""


class TornadoWithCurl(TornadoAwaiting):
    """`CurlAsyncHTTPClient`: connections are kept, and looked up, made and read in C."""

    @staticmethod
    def configure() -> None:
        """Let the client over libcurl make as many calls at once as there are requests."""
        from tornado.httpclient import AsyncHTTPClient

        AsyncHTTPClient.configure("tornado.curl_httpclient.CurlAsyncHTTPClient", max_clients=CLIENTS)


def build(recipe: Recipe, upstream: str) -> Any:
    """Return the Tornado application of a recipe. Needs Tornado and pycurl installed."""
    return application(recipe, upstream, TornadoWithCurl(), "async def")


def make_app() -> Any:
    """Return the application of the recipe this process serves."""
    return build(*served_here())


__getattr__ = lazily(globals())
