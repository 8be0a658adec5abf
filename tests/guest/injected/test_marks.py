"""What a thread is busy with is read off its stack, and work of the app inside middleware is not the middleware's."""

from types import FrameType, SimpleNamespace
from typing import cast

import pytest

from velodrome.guest.injected import marks
from velodrome.guest.injected.heartbeat import is_own
from velodrome.guest.injected.marks import STANDARD, busy_with, called_from

pytestmark = pytest.mark.unit
SITE = "/srv/venv/lib/python3.12/site-packages"
OWN, SERVER = ("/srv/shop/views.py", "view"), (f"{SITE}/uvicorn/server.py", "serve")
OTHER, HTTPX = ("/srv/shop/orders.py", "order"), (f"{SITE}/httpx/_main.py", "send")
ANYIO = (f"{SITE}/anyio/streams/memory.py", "send")
BASE = (f"{SITE}/starlette/middleware/base.py", "coro")
ROUTING = (f"{SITE}/starlette/routing.py", "app")
LOGGING = (f"{STANDARD}logging/__init__.py", "emit")
JSON = (f"{STANDARD}json/encoder.py", "encode")
EXPORT = (f"{SITE}/opentelemetry/sdk/trace/export/__init__.py", "worker")
ENDED = (EXPORT[0], "on_end")
THREADING = (f"{STANDARD}threading.py", "run")
POOL = (f"{SITE}/urllib3/connectionpool.py", "_get_conn")
COMPILE = (f"{SITE}/jinja2/environment.py", "compile")
GUEST = marks.__file__.rpartition("/injected/")[0]
LOOPED = (f"{GUEST}/injected/heartbeat.py", "watched")
WRAPPED = (f"{GUEST}/injected/libraries.py", "storing")
SEARCH = ("<frozen importlib._bootstrap>", "_find_spec")


def stack(*innermost_first: tuple[str, str]) -> FrameType:
    """Return the innermost of frames that are in such functions of such files, and nowhere else."""
    frame = None
    for file, function in reversed(innermost_first):
        frame = SimpleNamespace(f_code=SimpleNamespace(co_filename=file, co_name=function), f_back=frame)
    return cast(FrameType, frame)


@pytest.mark.parametrize(
    ("frames", "busy"),
    [
        ([OWN, ROUTING, SERVER], set()),
        ([JSON, LOGGING, OWN, SERVER], {"logging"}),
        ([OWN, ROUTING, ANYIO, BASE, SERVER], set()),
        ([ANYIO, BASE, SERVER], {"base-middleware"}),
        ([JSON, EXPORT, OWN, SERVER], {"telemetry"}),
        ([OWN, EXPORT, SERVER], set()),
        ([(f"{SITE}/requests/api.py", "post"), EXPORT, THREADING], {"telemetry"}),
        ([(f"{SITE}/urllib3/poolmanager.py", "request"), OTHER, ENDED, OWN, SERVER], {"telemetry"}),
        ([(f"{SITE}/httpx/_config.py", "create_ssl_context"), OWN, SERVER], {"tls-context"}),
        ([(f"{SITE}/starlette/middleware/gzip.py", "send_with_compression"), SERVER], set()),
        ([(f"{STANDARD}gzip.py", "write"), OWN, SERVER], {"compression"}),
        ([OWN, POOL, OWN, SERVER], {"dialling"}),
        ([SEARCH, ("<frozen importlib._bootstrap>", "_find_and_load"), OWN], {"importing"}),
        ([(f"{STANDARD}threading.py", "wait"), (f"{STANDARD}queue.py", "get"), POOL, OWN, SERVER], set()),
    ],
)
def test_the_marks_of_a_stack(frames: list[tuple[str, str]], busy: set[str]) -> None:
    assert set(busy_with(stack(*frames))) == busy


@pytest.mark.parametrize(
    ("frames", "name", "caller"),
    [
        ([JSON, LOGGING, LOGGING, OWN, SERVER], "logging", OWN),
        ([OWN, LOGGING, OTHER, SERVER], "logging", OTHER),
        ([JSON, LOGGING, SERVER], "logging", SERVER),
        ([JSON, LOGGING, BASE, OWN], "logging", OWN),
        ([SEARCH, HTTPX, OWN, SERVER], "importing", HTTPX),
        ([SEARCH, SEARCH, OWN, SERVER], "importing", OWN),
        ([JSON, LOGGING, THREADING], "logging", None),
        ([ANYIO, BASE, LOOPED, SERVER], "base-middleware", None),
        ([JSON, LOGGING, WRAPPED, OWN, LOOPED, SERVER], "logging", OWN),
        ([JSON, LOGGING, WRAPPED, SERVER], "logging", SERVER),
        ([COMPILE, ("/srv/shop/page.html", "root"), OWN, SERVER], "building-template", OWN),
    ],
)
def test_the_innermost_code_of_the_app_that_calls_it_is_named_or_else_the_nearest(
    frames: list[tuple[str, str]], name: str, caller: tuple[str, str] | None
) -> None:
    found = called_from(name, busy_with(stack(*frames))[name], is_own)
    assert (found and (found.f_code.co_filename, found.f_code.co_name)) == caller
