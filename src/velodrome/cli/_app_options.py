"""Options that describe an app, what is requested of it, and whether files may name what they name.

Help imports this module, so what carries a command out is imported in functions.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from velodrome.cli._stderr import tell
from velodrome.model import secrets
from velodrome.plan.requests.lines import ALL, SAFE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from velodrome.model.app import Request
    from velodrome.model.files import Named
    from velodrome.plan.requests.sources import Asking
    from velodrome.usecases.apps import AppSpec, ServedSpec
    from velodrome.usecases.studies import Trust

Command = TypeVar("Command", bound="Callable[..., None]")

APP, REQUESTS = "The app", "Requests"
"""Groups of options in the help."""


def _of_app(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=APP, **more)


def _of_requests(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=REQUESTS, **more)


def _mark(names: list[str] | None) -> list[str] | None:
    # Before anything else is read, so that what an error quotes is masked too.
    secrets.mark(names or ())
    return names


AppName = Annotated[
    str, typer.Argument(help="module:attribute, module:factory, or a Django settings module.")
]
RecipeName = Annotated[
    str, _of_app("--recipe", help="Serve a recipe instead of an app (see `velodrome recipes`).")
]
Python = Annotated[
    str,
    _of_app(help="Interpreter or environment of the app: .venv/bin/python, .venv, 3.12 (the active one)."),
]
Cwd = Annotated[str, _of_app(help="Folder the app runs in, first on its import path (the current one).")]
Env = Annotated[
    list[str] | None,
    _of_app(help="Environment variable: NAME=VALUE, or NAME to pass on yours; repeatable."),
]
EnvFile = Annotated[
    list[Path] | None,
    _of_app(
        "--env-file",
        help="File of environment variables, one NAME=VALUE per line; --env overrides it; repeatable.",
    ),
]
Interface = Annotated[
    str,
    _of_app(
        help="How servers call the app, if it cannot be detected: wsgi, asgi, asgi_trio, rsgi, aiohttp, "
        "tornado, sanic, robyn, grpc, grpc_aio."
    ),
]
Upstream = Annotated[
    list[str] | None,
    _of_app(
        help="Simulate a third party that the app calls: "
        "PAYMENTS_URL=latency:lognormal(50ms,0.4),errors:1%,body:@charge.json; repeatable."
    ),
]
Header = Annotated[
    list[str] | None,
    _of_requests(
        "-H",
        "--header",
        help="Header of every request: 'Host: shop.example', 'Authorization: Bearer …'; never stored; repeatable.",
    ),
]
HeaderFile = Annotated[
    list[Path] | None,
    _of_requests("--header-file", help="File of such headers, one per line; repeatable."),
]
Secret = Annotated[
    list[str] | None,
    _of_app(
        "--secret",
        callback=_mark,
        help="Mask the value of this variable, header, parameter or field, however short; repeatable.",
    ),
]
Proto = Annotated[str, _of_app(help="The .proto file of a gRPC servicer.")]
Setup = Annotated[str, _of_app(help="Command to run first: fill a database, start containers.")]
Teardown = Annotated[str, _of_app(help="Command to run at the end, whatever happened.")]
User = Annotated[
    str,
    _of_app(
        help="User that servers, app and commands run as if velodrome is root (the caller of sudo, else the owner "
        "of --cwd)."
    ),
]
AllowSdist = Annotated[
    bool,
    _of_app(
        "--allow-sdist",
        help="Allow building servers from source, which runs their build code on this machine.",
    ),
]
Lines = Annotated[
    list[str] | None,
    _of_requests(
        "--request", help="'GET /cart?id=7', 'POST /orders {\"id\": 1} -> 201'; repeatable (GET /)."
    ),
]
File = Annotated[
    Path | None,
    _of_requests("--requests", help="File of requests with weights and expected responses (TOML, JSON)."),
]
AccessLog = Annotated[
    Path | None,
    _of_requests(
        help="Request what an access log holds: common, combined, nginx's, JSON lines; gzip; - reads standard input."
    ),
]
OpenApi = Annotated[
    Path | None,
    _of_requests("--openapi", help="Request the operations of an OpenAPI document (JSON, YAML)."),
]
Methods = Annotated[
    str, _of_requests(help=f"Methods to take from a log or a document: GET,POST ({','.join(SAFE)}).")
]
TrustGiven = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Allow what a study or a file of requests names: executables, packages, files elsewhere.",
    ),
]


def _options(
    request: Lines = None,
    requests: File = None,
    access_log: AccessLog = None,
    openapi: OpenApi = None,
    methods: Methods = "",
    trust: TrustGiven = False,
    header: Header = None,
    header_file: HeaderFile = None,
    python: Python = "",
    cwd: Cwd = "",
    env: Env = None,
    env_file: EnvFile = None,
    secret: Secret = None,
    interface: Interface = "",
    upstream: Upstream = None,
    proto: Proto = "",
    setup: Setup = "",
    teardown: Teardown = "",
    user: User = "",
    allow_sdist: AllowSdist = False,
) -> None:
    """Every option that describes an app and what is requested of it, with its default."""


def describes_an_app(command: Command) -> Command:
    """Give a command that has `**_of_app` the options of `_options`, behind its `app` or `recipe`.

    Their values are in `context.params`, which `served_spec`, `app_spec` and `mix` read.
    """
    own = list(inspect.signature(command, eval_str=True).parameters.values())
    own = [parameter for parameter in own if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    behind = max(place for place, parameter in enumerate(own) if parameter.name in ("app", "recipe")) + 1
    shared = inspect.signature(_options, eval_str=True).parameters.values()
    every = [*own[:behind], *shared, *own[behind:]]
    by_name = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in every]
    command.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
    return command


OF_APPS = frozenset(
    {
        *("request", "requests", "access_log", "openapi", "methods", "trust", "header", "header_file"),
        *("cwd", "env", "env_file", "secret", "interface", "upstream", "proto", "setup", "teardown"),
        "allow_sdist",
    }
)
"""Parameters of commands that have no effect on a recipe."""


def app_spec(app: str, parameters: Mapping[str, Any], requests: Sequence[Request]) -> AppSpec:
    """Return an app as the parameters of a command describe it, by the names that all commands give them.

    Raises HeaderError, and EnvFileError or HeaderFileError for files.
    """
    from velodrome.plan import surroundings  # noqa: PLC0415
    from velodrome.plan.requests import lines as headers  # noqa: PLC0415
    from velodrome.usecases.apps import AppSpec  # noqa: PLC0415

    def every(name: str) -> Sequence[Any]:
        return parameters[name] or ()

    # A file has all that an app needs in production: of what is simulated, its value is not meant.
    simulated = {text.partition("=")[0] for text in every("upstream")}
    variables = [
        line
        for path in every("env_file")
        for line in surroundings.read_env_file(Path(path))
        if line.partition("=")[0] not in simulated
    ]
    lines = [line for path in every("header_file") for line in headers.lines_of(Path(path))]
    return AppSpec(
        app,
        env=(*variables, *every("env")),
        requests=tuple(requests),
        upstreams=tuple(every("upstream")),
        headers=headers.read_headers([*lines, *every("header")]),
        **{
            name: parameters[name]
            for name in (
                *("python", "cwd", "interface", "proto", "setup", "teardown", "user", "allow_sdist"),
            )
        },
    )


def served_spec(context: typer.Context) -> ServedSpec:
    """Return what a command serves: the app, or the recipe in its place. Raises UsageError."""
    from velodrome.model.errors import NeedlessOptionError, UsageError  # noqa: PLC0415
    from velodrome.usecases.apps import ServedSpec  # noqa: PLC0415

    parameters = context.params
    requests = mix(parameters).requests
    app, recipe = parameters["app"], parameters["recipe"]
    if bool(app) == bool(recipe):
        both = f"{app} is an app, and {recipe} a recipe that is served in place of one: " if app else ""
        raise UsageError(
            f"{both}give an app (shop.wsgi:application), or with --recipe one of those that ship (velodrome recipes)"
        )
    if app:
        return ServedSpec(app_spec(app, parameters, requests))
    if needless := typed_options(context, OF_APPS):
        raise NeedlessOptionError(needless, "a recipe defines its requests and all that it needs")
    return ServedSpec(None, recipe, parameters["python"], parameters["user"])


def methods(text: str) -> tuple[str, ...]:
    """Return the methods named. Raises BadOptionError."""
    found = tuple(part.strip().upper() for part in text.split(",") if part.strip())
    for method in found:
        if method not in ALL:
            from velodrome.model.errors import BadOptionError  # noqa: PLC0415

            raise BadOptionError("--methods", text, f"'{method}' is no method; there are {', '.join(ALL)}")
    return found or SAFE


def mix(parameters: Mapping[str, Any]) -> Asking:
    """Return the requests that the parameters of a command describe together; write what they leave out to stderr.

    Raises TwoSourcesError where they contradict each other, NeedlessOptionError for methods of nothing, UntrustedError,
    and UsageError for files.
    """
    from velodrome.model.app import register_secrets  # noqa: PLC0415
    from velodrome.plan.requests import sources  # noqa: PLC0415

    if parameters["methods"] and not parameters["access_log"] and not parameters["openapi"]:
        from velodrome.model.errors import NeedlessOptionError  # noqa: PLC0415

        why = "it chooses from an access log or an OpenAPI document; add --access-log or --openapi"
        raise NeedlessOptionError(["--methods"], why)
    lines = parameters["request"] or ()
    for line in lines:
        secrets.of_text(line)  # before one of them is quoted as wrong
    file, access_log, openapi = (
        None if (path := parameters[name]) is None else Path(path) for name in _FILES
    )
    see = trust(parameters["trust"]).see
    found = sources.of(lines, file, access_log, openapi, methods(parameters["methods"]), see=see)
    register_secrets(found.requests)
    for sentence in found.told:
        tell(secrets.mask(sentence))
    return found


_FILES = ("requests", "access_log", "openapi")


def typed_options(context: typer.Context, names: Collection[str]) -> tuple[str, ...]:
    """Return the options of the parameters called `names` that the command line has, as they are typed."""
    found = []
    for parameter in context.command.params:
        if parameter.name in names:
            source = context.get_parameter_source(parameter.name)
            if source is not None and source.name == "COMMANDLINE":
                found.append(max(parameter.opts, key=len))
    return tuple(found)


def trust(given: bool) -> Trust:
    """Return what decides: by the option, by what was allowed before or, on a terminal, by a question."""
    from velodrome.usecases.studies import Trust  # noqa: PLC0415

    # Either may be closed, and is None then.
    on_a_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    return Trust(given=given, ask=_ask_to_run if on_a_terminal else None, say=tell)


def _ask_to_run(path: str, named: Sequence[Named]) -> bool:
    """Ask on the terminal; what is not a yes is a no."""
    tell(f"{path} names what you have not allowed yet:")
    for thing in named:
        tell(f"  {thing.sentence}")
    print("Allow it, now and until one of these changes? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
