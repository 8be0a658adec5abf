"""Functions of the app's own that AnyIO calls in threads are heard of, and called on the loop where that is asked."""

from pathlib import Path
from typing import Any

import pytest
from tests.guest.injected.conftest import HEARTBEAT, UNTIL_REPORTED, Injected

FASTAPI = "fastapi==0.121.1"
SHOP = """
import threading
from contextvars import ContextVar
from dataclasses import dataclass

user = ContextVar("user", default="")

def decorated(function):
    return function

@decorated
def called(number: int, more: int = 0):
    user.set(user.get() + " and others")
    return number + more, user.get(), threading.current_thread() is threading.main_thread()

def fails():
    raise LookupError(str(threading.current_thread() is threading.main_thread()))

class Page:
    def __init__(self, number=1):
        self.number, self.on_loop = number, threading.current_thread() is threading.main_thread()

@dataclass
class Order:
    number: int = 1

class Checker:
    def __call__(self):
        return threading.current_thread() is threading.main_thread()

def session():
    yield threading.current_thread() is threading.main_thread()
"""
CALLED, FAILS, PAGE, ORDER, CHECKER, SESSION = 12, 16, 19, 24, 28, 31
PROGRAM = """
    import anyio, anyio.to_thread, os, shop
    from contextvars import copy_context
    from functools import partial

    async def main():
        shop.user.set("ann")
        run = anyio.to_thread.run_sync
        print(await run(partial(shop.called, 3, more=4)), await run(copy_context().run, shop.called, 3))
        print(shop.user.get())
        for call in (shop.fails, lambda: None):
            try: print(await run(call))
            except LookupError as error: print("fails", error)
        print((await run(shop.Page)).on_loop, await run(shop.Checker()))
        print(await run(os.getpid) == os.getpid())
    anyio.run(main)
"""


def sites(app: Path, *lines: int) -> dict[str, Any]:
    """Return the treatment of what begins at these lines of the shop."""
    return {"thread-hops": [{"file": str(app / "shop.py"), "line": line} for line in lines]}


@pytest.mark.parametrize("package", ["anyio==4.11.0", "starlette==1.10.0"])
def test_functions_that_are_named_are_called_on_the_loop_and_others_stay_in_threads(
    injected: Injected, package: str
) -> None:
    (injected.app / "shop.py").write_text(SHOP)
    said = "(7, 'ann and others', {0}) (3, 'ann and others', {0})\nann\nfails {0}\nNone\n{0} {0}\nTrue\n"
    assert injected.run(PROGRAM, {}, requires=(package,)) == said.format(False)
    every = sites(injected.app, CALLED, FAILS, PAGE, CHECKER)
    assert injected.run(PROGRAM, every, requires=(package,)) == said.format(True)
    assert injected.took() == {"thread-hops"}
    one = injected.run(PROGRAM, sites(injected.app, FAILS), requires=(package,))
    assert one == said.format(False).replace("fails False", "fails True")


def test_nothing_takes_hold_where_no_function_that_is_named_is_called(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(SHOP)
    injected.run(PROGRAM, sites(injected.app, 1), requires=("anyio==4.11.0",))
    assert injected.took() == set()


IN_FASTAPI = """
    import asyncio, shop
    from fastapi import Depends, FastAPI
    from fastapi.responses import StreamingResponse

    app = FastAPI()

    @app.get("/")
    async def page(a=Depends(shop.called), b=Depends(shop.Page), c=Depends(shop.Order), d=Depends(shop.session),
                   e=Depends(shop.Checker())):
        return [a[2], b.on_loop, d, e]

    app.get("/def")(shop.ends)

    @app.get("/parts")
    async def parts():
        return StreamingResponse(shop.parts())

    async def get(path):
        sent = []
        async def receive(): return {"type": "http.request", "body": b"", "more_body": False}
        async def send(message): sent.append(message.get("body", b""))
        await app({"type": "http", "method": "GET", "path": path, "query_string": b"number=1", "headers": [],
                   "http_version": "1.1", "scheme": "http", "server": ("a", 80), "client": ("b", 81),
                   "asgi": {"version": "3.0", "spec_version": "2.4"}, "root_path": ""}, receive, send)
        print(b"".join(sent).decode())

    async def main():
        for path in ("/", "/def", "/parts"):
            await get(path)
    asyncio.run(main())
"""
ENDS = f"""{SHOP}
def ends():
    return threading.current_thread() is threading.main_thread()

def parts():
    yield str(ends())
"""
ENDS_LINE, PARTS_LINE = 34, 37


def test_dependencies_classes_and_endpoints_of_fastapi_are_heard_of_with_their_place(
    injected: Injected,
) -> None:
    (injected.app / "shop.py").write_text(ENDS)
    said = injected.run(IN_FASTAPI + UNTIL_REPORTED.replace("\n", "\n    "), HEARTBEAT, requires=(FASTAPI,))
    assert said == "[false,false,false,false]\nfalse\nFalse\n"
    hops = [hop for line in injected.lines("heart") for hop in line.get("hops", ())]
    assert {(hop["line"], hop["function"], hop["text"], hop["times"]) for hop in hops} == {
        (CALLED, "called", "def called(number: int, more: int = 0):", 1),
        (PAGE, "Page", "class Page:", 1),
        (ORDER, "Order", "class Order:", 1),
        (CHECKER, "__call__", "def __call__(self):", 1),
        (SESSION, "session", "def session():", 2),
        (ENDS_LINE, "ends", "def ends():", 1),
        (PARTS_LINE, "parts", "def parts():", 2),
    }
    for hop in hops:
        assert hop["file"] == str(injected.app / "shop.py")
        assert 0 < hop["cpu"] <= hop["seconds"] + 1e-4


def test_all_that_is_heard_of_in_fastapi_can_be_called_on_the_loop(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(ENDS)
    every = sites(injected.app, CALLED, PAGE, ORDER, CHECKER, SESSION, ENDS_LINE, PARTS_LINE)
    assert injected.run(IN_FASTAPI, every, requires=(FASTAPI,)) == "[true,true,true,true]\ntrue\nTrue\n"
