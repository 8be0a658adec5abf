"""Apps without a framework, in every form that servers and users know."""

import os


def application(environ, start_response):
    known = {
        "/": b"hello",
        "/env": os.environ.get("SHOP_NAME", "none").encode(),
        "/cwd": os.getcwd().encode(),
    }
    body = known.get(environ["PATH_INFO"])
    if body is None:
        start_response("404 Not Found", [("Content-Type", "text/plain"), ("Content-Length", "13")])
        return [b"no such thing"]
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


def create_app():
    return application


def create_named(name, *, debug=False):
    assert name == "test"
    return application


def create_configured(config, *, debug):
    return application


def make_shop(config, name):
    return application


class Callable:
    def __call__(self, environ, start_response):
        return application(environ, start_response)


instance = Callable()
nothing = None
number = 7


async def asgi(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            kind = (await receive())["type"]
            await send({"type": kind + ".complete"})
            if kind == "lifespan.shutdown":
                return
    headers = [(b"content-length", b"5")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"hello"})


class Double:
    """ASGI 2: made for one scope, then called."""

    def __init__(self, scope):
        self.scope = scope

    async def __call__(self, receive, send):
        await asgi(self.scope, receive, send)


def double(scope):
    return Double(scope)


async def rsgi(scope, protocol):
    protocol.response_str(200, [], "hello")


def anything(*given):
    return application(*given)


class Configured:
    """Needs an argument before it is an app."""

    def __init__(self, configuration):
        self.configuration = configuration

    def __call__(self, environ, start_response):
        return application(environ, start_response)
