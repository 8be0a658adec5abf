"""A server for an experiment: started as a race starts it, but asked one thing at a time.

with serving(Served("tornado", recipe, made), lab) as server:
    ask(server)
"""

import http.client
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from velodrome.guest import catalog
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import KnobValue, Launch, Process
from velodrome.model.errors import ServerNotReadyError
from velodrome.run import servers, third_party
from velodrome.run.drivers.driver import Target
from velodrome.run.environments.environment import Environment
from velodrome.run.lab import Lab
from velodrome.run.link import Loopback, Site, entered
from velodrome.run.machine.limits import Bounds
from velodrome.run.servers import NotReady, Server, Serving

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
def serving(served: Served, lab: Lab, site: Site | Loopback = LOOPBACK) -> Iterator[Server]:
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
        with entered(site.client):
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

    Raises OSError or HTTPException where an answer fails, ServerNotReadyError for one that is not 200.
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
