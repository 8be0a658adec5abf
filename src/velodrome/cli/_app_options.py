"""The options that say which app of the user's own is meant, and what it runs in."""

from dataclasses import dataclass
from typing import Annotated

import typer

from velodrome.model.request import Request
from velodrome.plan.asked import headers
from velodrome.track.apps import INTERFACES, Asked

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
    str, typer.Option(help=f"How it is called, where it cannot be told by itself: {', '.join(INTERFACES)}.")
]
Upstream = Annotated[
    list[str] | None,
    typer.Option(
        help="A simulated third party in place of one it calls: "
        "PAYMENTS_URL=latency:lognormal(50ms,0.4),errors:1%,body:@charge.json."
    ),
]
Header = Annotated[
    list[str] | None,
    typer.Option(
        "-H",
        "--header",
        help="Of every request: 'Host: shop.example', 'Authorization: Bearer …'; never stored; repeatable.",
    ),
]
Proto = Annotated[str, typer.Option(help="The .proto file of a gRPC servicer.")]
Setup = Annotated[str, typer.Option(help="Command to run before: fills a database, starts containers.")]
Teardown = Annotated[str, typer.Option(help="Command to run after, however it ends.")]
User = Annotated[
    str,
    typer.Option(
        help="User that servers, app and commands run as where velodrome is root (sudo's caller, else --cwd's owner)."
    ),
]
AllowSdist = Annotated[
    bool,
    typer.Option("--allow-sdist", help="Servers may be built from source, which runs their build code here."),
]


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
    headers: list[str] | None = None
    """Of every request."""
    setup: str = ""
    teardown: str = ""
    user: str = ""
    allow_sdist: bool = False

    def asked(self, app: str) -> Asked:
        """Return it of one app. Raises HeaderError."""
        return Asked(
            app,
            self.python,
            self.cwd,
            tuple(self.env or ()),
            self.interface,
            self.requests,
            tuple(self.upstreams or ()),
            self.proto,
            headers=headers.read(self.headers or ()),
            setup=self.setup,
            teardown=self.teardown,
            user=self.user,
            allow_sdist=self.allow_sdist,
        )
