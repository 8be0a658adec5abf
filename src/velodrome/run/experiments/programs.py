"""What experiments start: programs of the guest's, which print their findings, and servers, which get one request at a
time.

made = environment_of("tornado", settings, lab)
facts = run_program(made, lab, "velodrome.guest.experiments.blocked_loop", "crowd", "--tasks=100")

with serve(Served("tornado", recipe, made), lab) as server:         # started as a race starts it, and ready
    ask(server)

with listening(Served("grpc-gevent", recipe, made, under=without_mode), lab) as server:     # may never answer rightly
    ...
"""

import http.client
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from velodrome.guest import catalog
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import KnobValue, Launch, Process
from velodrome.model.claim import Setting
from velodrome.model.errors import ProgramError, ServerNotReadyError
from velodrome.run import servers, third_party
from velodrome.run.account import hand_over
from velodrome.run.drivers.driver import Target
from velodrome.run.environments.environment import Environment
from velodrome.run.lab import Lab
from velodrome.run.link import Loopback, Site, enter
from velodrome.run.machine.limits import Bounds
from velodrome.run.servers import NotReady, Server, Serving
from velodrome.run.supervision import scratch
from velodrome.run.supervision.python import guest, guest_answer

VERSIONS: Mapping[str, Setting] = {"python": "", "packages": ()}
"""Settings to run on another interpreter, with other versions: `packages = ["tornado=5.1.1"]`."""
PROGRAM_S = 45.0
"""A program may take this long; its experiment's deadline is longer."""


def environment_of(name: str, settings: Mapping[str, Setting], lab: Lab) -> Environment:
    """Return the environment of a stack, with the versions of it that the settings set.

    Raises KeyError for a stack that is not there, EnvironmentFailedError, InterpreterNotFoundError.
    """
    stack = lab.stacks[name]
    written = settings.get("packages", ())
    set_to = dict(line.split("=", 1) for line in (written if isinstance(written, tuple) else ()))
    needed = {line.partition("==")[0].lower() for line in catalog.requires(stack)}
    packages = {package: version for package, version in set_to.items() if package.lower() in needed}
    return lab.environment(stack, str(settings.get("python", "")) or None, packages)


def run_program(made: Environment, lab: Lab, module: str, *arguments: str, limit_s: float = PROGRAM_S) -> Any:
    """Run a guest program to its end and return the JSON of its last line. Raises ProgramError."""
    with scratch.hold_folder("program") as folder:
        hand_over(folder)
        env = {"PYTHONNOUSERSITE": "1", "HOME": str(folder), "LANG": "C.UTF-8"}
        begun = guest(made.python, lab.guest_tree, module, *arguments, env=env, cwd=str(folder))
        try:
            done = guest_answer(begun, limit_s)
        except subprocess.TimeoutExpired as error:
            raise ProgramError(module, f"it did not end within {limit_s:g} s") from error
    lines = done.stdout.strip().splitlines()
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError) as error:
        last = done.stderr.strip().splitlines()[-3:]
        raise ProgramError(module, f"exit status {done.returncode}", tuple(last)) from error


LOOPBACK = Loopback()
ANSWER_S = 10.0
"""One answer may take this long."""


@dataclass(frozen=True)
class Served:
    """What is started: plain data."""

    stack: str
    recipe: Recipe
    made: Environment
    app: str = ""
    """`module:attribute` instead of the recipe: then any answer with status 200 is right."""
    knobs: Mapping[str, KnobValue] = field(default_factory=dict)
    under: Callable[[Process], Process] = lambda process: process
    """Changes the command, to run the server under a program of ours."""


@contextmanager
def serve(served: Served, lab: Lab, site: Site | Loopback = LOOPBACK) -> Iterator[Server]:
    """Start a server at a site and wait until it answers; stop it at the end. Raises ServerNotReadyError."""
    stack = lab.stacks[served.stack]

    def command(launch: Launch) -> Process:
        return served.under(stack.command(launch))

    with ExitStack() as running:
        third = running.enter_context(third_party.start()) if served.recipe.calls_upstream else None
        plain = Serving(
            replace(stack, command=command),
            served.recipe,
            served.made.python,
            lab.guest_tree,
            servers.fresh_port(),
            host=site.host,
            knobs=served.knobs,
            upstream=third.url if third else "",
            app=served.app,
        )
        server = running.enter_context(Server(plain, Bounds("nothing"), inside=site.server))
        target = Target.of_recipe(server.url, served.recipe)
        expected = None if served.app else catalog.interface(stack.interface).answer(served.recipe)
        with enter(site.client):
            ready = servers.await_right_answer(
                replace(target, expect_body=expected),
                server.exit,
                server.started,
                lab.start_seconds + served.recipe.wait_ms / 1000,
                answer_s=served.recipe.wait_ms / 1000,
            )
        if isinstance(ready, NotReady):
            raise ServerNotReadyError(served.stack, ready.reason, server.last_lines())
        yield server


def ask(server: Server, times: int = 1, headers: Mapping[str, str] | None = None) -> list[bytes]:
    """Ask so many times one after the other, on one connection where it is kept; return the bodies.

    Raises OSError or HTTPException where an answer fails, ServerNotReadyError for an answer that is not 200.
    """
    bodies = []
    connection = http.client.HTTPConnection(server.serving.host, server.serving.port, timeout=ANSWER_S)
    try:
        for _ in range(times):
            connection.request(server.serving.recipe.method, "/", headers=dict(headers or {}))
            answer = connection.getresponse()
            bodies.append(answer.read())
            if answer.status != 200:
                name = server.serving.stack.name
                raise ServerNotReadyError(name, f"it answers status {answer.status}", server.last_lines())
    finally:
        connection.close()
    return bodies


PAUSE_S = 0.02
STOP_S = 1.0
"""From SIGTERM to SIGKILL: some of these servers cannot end by themselves, and that is known."""


@contextmanager
def listening(served: Served, lab: Lab, variables: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Start a server, with `variables` in its environment, and end it after. Raises ServerNotReadyError."""
    stack = lab.stacks[served.stack]

    def command(launch: Launch) -> Process:
        process = served.under(stack.command(launch))
        return replace(process, env={**process.env, **(variables or {})})

    serving = Serving(
        replace(stack, command=command),
        served.recipe,
        served.made.python,
        lab.guest_tree,
        servers.fresh_port(),
        knobs=served.knobs,
        app=served.app,
    )
    with Server(serving, Bounds("nothing")) as server:
        until = server.started + lab.start_seconds
        while not _takes_connections(serving):
            if server.exit() is not None or time.monotonic() > until:
                raise ServerNotReadyError(served.stack, "nothing listens on its port", server.last_lines())
            time.sleep(PAUSE_S)
        yield server
        server.stop(STOP_S)


def address(server: Server) -> str:
    """Return `host:port` of a server."""
    return f"{server.serving.host}:{server.serving.port}"


def _takes_connections(serving: Serving) -> bool:
    with suppress(ConnectionRefusedError):
        socket.create_connection((serving.host, serving.port), timeout=STOP_S).close()
        return True
    return False
