"""A server for an experiment that may never answer rightly: it is there once its port takes connections.

with listening(Served("grpc-gevent", recipe, made, under=without_mode), lab) as server:
    ...
"""

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace

from velodrome.guest.stack import Launch, Process
from velodrome.model.errors import ServerNotReadyError
from velodrome.run import servers
from velodrome.run.experiments.serving import Served
from velodrome.run.lab import Lab
from velodrome.run.machine.limits import Bounds
from velodrome.run.servers import Server, Serving

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
