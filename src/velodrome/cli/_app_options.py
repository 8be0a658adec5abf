"""The options that say which app of the user's own is meant, and what it runs in."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from velodrome.model import secrets
from velodrome.model.app import Request
from velodrome.plan import env_file
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
EnvFile = Annotated[
    list[Path] | None,
    typer.Option("--env-file", help="File of such variables, NAME=VALUE a line; --env wins; repeatable."),
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
HeaderFile = Annotated[
    list[Path] | None,
    typer.Option("--header-file", help="File of such headers, one a line; repeatable."),
]


def _mark(names: list[str] | None) -> list[str] | None:
    # Before anything else is read, so that what an error quotes is masked too.
    secrets.mark(names or ())
    return names


Secret = Annotated[
    list[str] | None,
    typer.Option(
        "--secret",
        callback=_mark,
        help="Mask what stands under this name, however short: a variable, header, parameter, field; repeatable.",
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
    env_files: list[Path] | None = None
    header_files: list[Path] | None = None

    def asked(self, app: str) -> Asked:
        """Return it of one app. Raises HeaderError, and EnvFileError or HeaderFileError for files."""
        variables = [line for path in self.env_files or () for line in env_file.read(path)]
        given = [line for path in self.header_files or () for line in headers.lines_of(path)]
        return Asked(
            app,
            self.python,
            self.cwd,
            (*variables, *(self.env or ())),
            self.interface,
            self.requests,
            tuple(self.upstreams or ()),
            self.proto,
            headers=headers.read([*given, *(self.headers or ())]),
            setup=self.setup,
            teardown=self.teardown,
            user=self.user,
            allow_sdist=self.allow_sdist,
        )
