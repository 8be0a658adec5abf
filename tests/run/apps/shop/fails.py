"""Asks a database that is not there, for each request anew."""

import socket


def application(environ, start_response):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        socket.create_connection(bound.getsockname(), 1)


async def asgi(scope, receive, send):
    assert scope["type"] == "http"
    application({}, None)
