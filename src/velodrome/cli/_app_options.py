"""The options that say which app of the user's own is meant, and what it runs in."""

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from velodrome.cli._telling import tell
from velodrome.guest import catalog
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack
from velodrome.model import secrets
from velodrome.model.app import App, Request, known
from velodrome.model.errors import BadOptionError, NeedlessOptionError, UnknownNameError, UsageError
from velodrome.model.files import Named
from velodrome.model.load import Limits, Link
from velodrome.model.trial import Contestant, Trial
from velodrome.plan import surroundings
from velodrome.plan.requests import lines as headers
from velodrome.plan.requests import sources
from velodrome.plan.requests.lines import ALL, SAFE
from velodrome.plan.requests.sources import Asking
from velodrome.report.typeset import visible
from velodrome.run.environments import guest_tree
from velodrome.run.lab import Lab
from velodrome.usecases import apps, bench
from velodrome.usecases.apps import INTERFACES, Asked
from velodrome.usecases.studies import Trust


def given(context: typer.Context, names: Collection[str]) -> tuple[str, ...]:
    """Return the options of the parameters called `names` that the command line gives, as they are typed."""
    found = []
    for parameter in context.command.params:
        if parameter.name in names:
            source = context.get_parameter_source(parameter.name)
            if source is not None and source.name == "COMMANDLINE":
                found.append(max(parameter.opts, key=len))
    return tuple(found)


HELP = "Allow what a study or a file of requests names: executables, packages, files that are not beside it."
TrustGiven = Annotated[bool, typer.Option("--trust", help=HELP)]


def trust(given: bool) -> Trust:
    """Return what decides: by the option, by what was allowed before or, on a terminal, by a question."""
    # Either may be closed, and is None then.
    on_a_terminal = all(one is not None and one.isatty() for one in (sys.stdin, sys.stderr))
    return Trust(given=given, ask=_asked if on_a_terminal else None, say=tell)


def _asked(path: str, named: Sequence[Named]) -> bool:
    """Ask on the terminal; what is not a yes is a no."""
    tell(f"{path} names what you have not allowed yet:")
    for one in named:
        tell(f"  {one.sentence}")
    print("Allow it, now and until one of these changes? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


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
        variables = [line for path in self.env_files or () for line in surroundings.read_env_file(path)]
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
            headers=headers.read_headers([*given, *(self.headers or ())]),
            setup=self.setup,
            teardown=self.teardown,
            user=self.user,
            allow_sdist=self.allow_sdist,
        )


Lines = Annotated[
    list[str] | None,
    typer.Option(
        "--request", help="'GET /cart?id=7', 'POST /orders {\"id\": 1} -> 201'; repeatable (GET /)."
    ),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--requests", help="A file of requests, by weight, with checks on the answers (TOML, JSON)."
    ),
]
AccessLog = Annotated[
    Path | None,
    typer.Option(
        help="The mix of an access log: common, combined, nginx's, JSON lines; gzip; - is standard input."
    ),
]
OpenApi = Annotated[
    Path | None, typer.Option("--openapi", help="The operations of an OpenAPI document (JSON, YAML).")
]
Methods = Annotated[
    str, typer.Option(help=f"Those taken from a log or a document: GET,POST ({','.join(SAFE)}).")
]


def methods(text: str) -> tuple[str, ...]:
    """Return the methods named. Raises BadOptionError."""
    found = tuple(part.strip().upper() for part in text.split(",") if part.strip())
    for one in found:
        if one not in ALL:
            raise BadOptionError("--methods", text, f"'{one}' is no method; there are {', '.join(ALL)}")
    return found or SAFE


def mix(
    lines: Sequence[str] | None,
    file: Path | None,
    access_log: Path | None,
    openapi: Path | None,
    named: str,
    trusted: bool,
) -> Asking:
    """Return what the options of a command say together, and tell on standard error what is to be told of it.

    `named` are the methods, `trusted` whether the file may name files that are not beside it. Raises TwoSourcesError
    where they contradict each other, UntrustedError, and UsageError for files.
    """
    for line in lines or ():
        secrets.of_text(line)  # before one of them is quoted as wrong
    see = trust(trusted).see
    found = sources.of(lines or (), file, access_log, openapi, methods(named), see=see)
    known(found.requests)
    for sentence in found.told:
        print(visible(secrets.mask(sentence)), file=sys.stderr, flush=True)
    return found


AppName = Annotated[
    str, typer.Argument(help="module:attribute, module:factory, or a Django settings module.")
]
RecipeName = Annotated[
    str, typer.Option("--recipe", help="A recipe in the place of an app (`velodrome recipes`).")
]

OF_APPS = frozenset(
    {
        *("request", "requests", "access_log", "openapi", "methods", "trust", "header", "header_file"),
        *("cwd", "env", "env_file", "secret", "interface", "upstream", "proto", "setup", "teardown"),
        "allow_sdist",
    }
)
"""Parameters of commands that say nothing to a recipe."""


@dataclass(frozen=True)
class Served:
    """What is served, and where it can be."""

    recipe: Recipe
    app: App | None
    lab: Lab
    python: str = ""
    """Interpreter of a recipe's servers; an app has its own."""

    @property
    def label(self) -> str:
        """As a title says it."""
        return f"{self.recipe.name}: {self.recipe.about}"

    def trial(self, study: str, contestant: Contestant, limits: Limits, link: Link | None = None) -> Trial:
        """Return what is measured; its load is set each time."""
        return bench.trial_of(
            study, self.recipe, contestant, limits, app=self.app, python=self.python, link=link
        )


@dataclass(frozen=True)
class Choice:
    """What the command line says is served."""

    app: str
    recipe: str
    given: Given
    of_apps: tuple[str, ...] = ()
    """Options that it gives and that are of apps alone."""


@contextmanager
def served(choice: Choice, extra: tuple[str, ...] = ()) -> Iterator[Served]:
    """Look at the app, run its commands around, and yield it; or yield the recipe.

    `extra` are paths of stacks of the user's own. Raises UsageError for all that is wrong with it.
    """
    if bool(choice.app) == bool(choice.recipe):
        raise UsageError(
            "give an app (shop.wsgi:application), or with --recipe one of those that ship (velodrome recipes)"
        )
    given = choice.given
    if choice.recipe:
        if choice.of_apps:
            raise NeedlessOptionError(choice.of_apps, "a recipe says itself what is asked and what it needs")
        with apps.served_as(given.user, "", tell):
            lab = Lab(catalog.stacks(extra), guest_tree.export(extra), extra=extra)
            yield Served(_recipe(choice.recipe), None, lab, given.python)
        return
    asked = given.asked(choice.app)
    with apps.commands_around(asked, tell):
        app = apps.look(asked)
        yield Served(app.recipe, app, apps.lab_for(asked, extra))


def tell_unread(found: Sequence[App | None], stacks: Sequence[Stack]) -> None:
    """Say on standard error which settings of the user's own do not act while these stacks are compared."""
    every = (apps.unread_settings(one, stacks) for one in found if one is not None)
    for sentence in dict.fromkeys(filter(None, every)):
        tell(sentence)


def _recipe(name: str) -> Recipe:
    known = catalog.recipes()
    if name not in known:
        raise UnknownNameError("recipe", name, tuple(known))
    return known[name]
