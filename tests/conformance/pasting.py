"""An app of a user's own, served as a race serves it and as what is pasted says, so that the two can be compared."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
from tests.conformance.booted import settle, tree_of

from velodrome.guest import catalog
from velodrome.guest.stack import KnobValue, Stack
from velodrome.judge.deploying import deploy_app, starts_something
from velodrome.model.app import App, Content, Request
from velodrome.model.trial import Contestant
from velodrome.run.apps.serving import as_it_stands, unlike
from velodrome.run.drivers.driver import Target
from velodrome.run.environments.environment import Environment
from velodrome.run.machine.limits import Bounds
from velodrome.run.servers import NotReady, Server, Serving, await_right_answer

BODY = "a cart of seven"
_ASGI = f"""
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({{"type": message["type"] + ".complete"}})
            if message["type"] == "lifespan.shutdown":
                return
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"{len(BODY)}")]
    await send({{"type": "http.response.start", "status": 200, "headers": headers}})
    await send({{"type": "http.response.body", "body": b"{BODY}"}})
"""
SOURCES = {
    "wsgi": f"""
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "{len(BODY)}")])
    return [b"{BODY}"]
""",
    "asgi": _ASGI,
    "asgi_trio": _ASGI,
    "rsgi": f"""
async def app(scope, protocol):
    protocol.response_str(200, [("content-type", "text/plain")], "{BODY}")
""",
    "aiohttp": f"""
from aiohttp import web


async def cart(request):
    return web.Response(text="{BODY}")


app = web.Application()
app.router.add_get("/", cart)
""",
    "tornado": f"""
from tornado.web import Application, RequestHandler


class Cart(RequestHandler):
    def get(self):
        self.write("{BODY}")


app = Application([("/", Cart)])
""",
    "sanic": f"""
from sanic import Sanic
from sanic.response import text

app = Sanic("shop")


@app.get("/")
async def cart(request):
    return text("{BODY}")
""",
    "robyn": f"""
from robyn import Robyn

app = Robyn(__file__)


@app.get("/")
async def cart(request):
    return "{BODY}"
""",
}
"""An app in each idiom, as users write them."""
PASTED = {name: stack for name, stack in catalog.stacks().items() if stack.interface in SOURCES}
"""Every stack that serves an app of a user's own over HTTP."""
REQUEST = Request("cart", expect_body=Content(BODY))
BOOT_S, STOP_S = 30.0, 15.0


@dataclass(frozen=True)
class Shop:
    """The app in a folder of its own, with an environment of a stack."""

    folder: Path
    stack: Stack
    environment: Environment
    knobs: Mapping[str, KnobValue]

    @property
    def app(self) -> App:
        """What is served."""
        return App("shop:app", self.stack.interface, str(self.environment.python), str(self.folder))

    def pasted(self, port: int) -> str:
        """Return the lines to paste."""
        found = Contestant(self.stack.name, self.knobs)
        pasted = deploy_app(self.app, found, self.stack, self.environment.packages, port=port)
        assert starts_something(pasted), pasted
        return pasted


def make_shop(
    folder: Path, stack: Stack, environment: Environment, knobs: Mapping[str, KnobValue] | None = None
) -> Shop:
    """Write an app into a folder."""
    folder.mkdir(exist_ok=True)
    (folder / "shop.py").write_text(SOURCES[stack.interface])
    return Shop(folder, stack, environment, knobs or {})


@contextlib.contextmanager
def as_raced(shop: Shop, tree: Path, port: int) -> Iterator[Server]:
    """Serve it as a race does."""
    with _serve(_serving(shop, tree, port)) as server:
        yield server


@contextlib.contextmanager
def as_pasted(shop: Shop, port: int) -> Iterator[Server]:
    """Serve it by the pasted lines as they stand, as `velodrome tune` does in the end."""
    lines, environment = shop.pasted(port), shop.environment
    assert not unlike(lines, environment.packages), f"{lines}\nis not what was measured"
    variables = {"PATH": os.environ.get("PATH", ""), "PYTHONPYCACHEPREFIX": str(shop.folder / "bytecode")}
    raced = replace(_serving(shop, Path(), port), variables=variables)
    with _serve(as_it_stands(raced, shop.app, lines, environment)) as server:
        yield server


def _serving(shop: Shop, tree: Path, port: int) -> Serving:
    return Serving(
        shop.stack,
        shop.app.recipe,
        shop.environment.python,
        tree,
        port,
        knobs=shop.knobs,
        app="shop:app",
        packages=shop.environment.packages,
        cwd=str(shop.folder),
    )


@contextlib.contextmanager
def _serve(serving: Serving) -> Iterator[Server]:
    with Server(serving, Bounds("nothing")) as server:
        ready = await_right_answer(_target(serving.port), server.exit, server.started, BOOT_S)
        assert not isinstance(ready, NotReady), "\n".join([ready.reason, *server.last_lines()])
        yield server


@dataclass
class Running:
    """A program that was started by words."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def output(self) -> str:
        """Return what it wrote."""
        return self.log.read_text(errors="replace")

    def processes(self) -> list[psutil.Process]:
        """Return the living processes of its tree."""
        return tree_of(self.process.pid)

    def settle(self) -> None:
        """Wait until it does nothing."""
        settle(self.processes)

    def stop(self, number: int, whole_group: bool) -> tuple[float, int]:
        """Send a signal, as systemd does; return the seconds until all have ended, and the status.

        Raises AssertionError when they have not within `STOP_S`.
        """
        every = self.processes()
        began = time.monotonic()
        for process in every if whole_group else every[:1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_S)
        _, alive = psutil.wait_procs(every, max(STOP_S - (time.monotonic() - began), 0.1))
        assert not alive, f"{alive} outlived {signal.Signals(number).name}\n{self.output()}"
        return time.monotonic() - began, self.process.returncode


@contextlib.contextmanager
def running(words: Sequence[str], shop: Shop, variables: Mapping[str, str]) -> Iterator[Running]:
    """Run a program in the folder of the app, with its environment's programs first; whatever it started is ended."""
    log = shop.folder / "output.log"
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    path = os.pathsep.join([str(shop.environment.python.parent), os.environ.get("PATH", "")])
    with log.open("wb") as out:
        process = subprocess.Popen(
            words,
            cwd=shop.folder,
            env={**kept, "PATH": path, "HOME": str(shop.folder), **variables},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    program = Running(process, log)
    try:
        yield program
    finally:
        left = program.processes()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for stray in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                stray.kill()
        process.wait(STOP_S)


def _await(program: Running, port: int) -> None:
    ready = await_right_answer(_target(port), lambda: None, time.monotonic(), BOOT_S)
    assert not isinstance(ready, NotReady), f"{ready.reason}\n{program.output()}"


def await_it(program: Running, port: int) -> None:
    """Wait for the first right answer."""
    _await(program, port)


def _target(port: int) -> Target:
    return Target.of_requests(f"http://127.0.0.1:{port}/", (REQUEST,))
