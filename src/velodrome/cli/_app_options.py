"""The options that say which app of the user's own is meant, and what it runs in."""

from dataclasses import dataclass
from typing import Annotated

import typer

from velodrome.model.request import Request
from velodrome.track.apps import Asked

Python = Annotated[
    str,
    typer.Option(
        help="Interpreter or environment of the app: .venv/bin/python, .venv, 3.12 (the active one)."
    ),
]
Cwd = Annotated[str, typer.Option(help="Folder the app runs in, first on its import path (the current one).")]
Env = Annotated[
    list[str] | None,
    typer.Option(help="Variable of its environment: NAME=VALUE, or NAME to hand on yours; repeatable."),
]
Interface = Annotated[
    str, typer.Option(help="wsgi, asgi, rsgi, aiohttp or tornado, where it cannot be told by itself.")
]
Upstream = Annotated[
    list[str] | None,
    typer.Option(
        help="A simulated third party in place of one it calls: PAYMENTS_URL=latency:lognormal(50ms,0.4)."
    ),
]
Proto = Annotated[str, typer.Option(help="The .proto file of a gRPC servicer.")]
Setup = Annotated[str, typer.Option(help="Command to run before: fills a database, starts containers.")]
Teardown = Annotated[str, typer.Option(help="Command to run after, however it ends.")]


@dataclass(frozen=True)
class Given:
    """What the command line says of apps, whichever of them."""

    python: str = ""
    cwd: str = ""
    env: list[str] | None = None
    interface: str = ""
    upstreams: list[str] | None = None
    proto: str = ""
    requests: tuple[Request, ...] = ()
    """What is asked."""

    def asked(self, app: str) -> Asked:
        """Return it of one app."""
        return Asked(
            app,
            self.python,
            self.cwd,
            tuple(self.env or ()),
            self.interface,
            self.requests,
            tuple(self.upstreams or ()),
            self.proto,
        )
