"""The requests to an app: named by its import path, or given as the object a caller holds."""

import ast
import math
import os
import site
import sys
import sysconfig
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from velodrome.api.arguments import checked, lines_of
from velodrome.model import amounts
from velodrome.model import secrets as known_secrets
from velodrome.model.app import Request
from velodrome.model.condition import Condition, read_slo
from velodrome.model.errors import AppInProgramError, AppInTestError, AppNotFoundError, UsageError
from velodrome.model.load import Limits, Link
from velodrome.plan import surroundings
from velodrome.plan.requests import sources
from velodrome.plan.requests.lines import SAFE, Header, check_headers
from velodrome.plan.requests.sources import Asking
from velodrome.run.faults import refusals
from velodrome.run.supervision import scratch
from velodrome.usecases.apps import AppSpec, folder
from velodrome.usecases.studies import Trust
from velodrome.usecases.terms import Terms

Headers = Mapping[str, str] | Sequence[Header]
"""By name, or pairs of name and value, where one is given several times."""


def app_spec(
    app: object,
    requests: tuple[Request, ...],
    *,
    python: str | Path = "",
    cwd: str | Path = "",
    env: Sequence[str] | Mapping[str, str] = (),
    interface: str = "",
    upstreams: Sequence[str] = (),
    proto: str | Path = "",
    headers: Headers = (),
    setup: str = "",
    teardown: str = "",
    user: str = "",
    allow_sdist: bool = False,
    secrets: Sequence[str] = (),
) -> AppSpec:
    """Return the specification of an app, named by its import path or given as an object.

    `python` is its interpreter (by default the one running), `cwd` its folder, `env` variables as `NAME=value`,
    or a mapping of names to values, `interface` how it is called where that cannot be seen, `upstreams` third parties
    to simulate, as `PAYMENTS_URL=latency:50ms`, `proto` the file that describes a gRPC servicer; `headers` of every
    request, such as `{"Host": "shop.example"}`, whose values are stored nowhere; `setup` and `teardown` commands that
    run before and after; `user` whom all of it runs as where this process is root (who called sudo, else the owner of
    `cwd`); `allow_sdist` lets packages that servers need be built from source, which runs their build code; `secrets`
    are names of variables, headers, parameters and fields whose values are masked however short they are.
    An object runs in the folder its module is imported from, unless `cwd` names another. Raises AppNotFoundError,
    AppInTestError and AppInProgramError for an app that no module holds which a server could import, and HeaderError.
    """
    known_secrets.mark(secrets)
    python, cwd, proto = str(python), str(cwd), str(proto)
    path, source = (app, "") if isinstance(app, str) else locate_app(app)
    if not cwd or (source and Path(source) == Path(folder(cwd)).resolve()):
        cwd, source = cwd or source, ""
    return AppSpec(
        path,
        python or sys.executable,
        cwd,
        lines_of(env),
        interface,
        requests,
        tuple(upstreams),
        proto,
        headers=check_headers(headers),
        setup=setup,
        teardown=teardown,
        user=user,
        allow_sdist=allow_sdist,
        source=source,
    )


Asks = Sequence[str | Request]
"""Lines such as `"GET /cart?id=7"`, or requests; the same twice is sent twice as often."""


@refusals()
@checked()
def requests(
    *lines: str,
    file: str | Path | None = None,
    access_log: str | Path | None = None,
    openapi: str | Path | None = None,
    methods: Sequence[str] = SAFE,
    trust: bool = False,
) -> Asking:
    """Return the requests of one of these sources: `.requests`, with `.told` on what is left out, and of a log
    `.peak_rps`, requests in its busiest second.

    `methods` are those taken from a log or a document; `trust` allows the file to name files that are not beside it.
    Raises UsageError.
    """
    see = trusting(trust).see
    return sources.of(lines, _path(file), _path(access_log), _path(openapi), methods, see=see)


def trusting(given: bool) -> Trust:
    """Return what decides on what a file names, without asking anybody."""
    return Trust(given=given, ask=None, say=lambda sentence: warnings.warn(sentence, stacklevel=2))


def _path(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)


def mix_of(requests: Asks) -> tuple[Request, ...]:
    """Return requests, each once, with its weight. Raises RequestLineError."""
    lines = [line for line in requests if isinstance(line, str)]
    given = tuple(request for request in requests if isinstance(request, Request))
    return (*sources.of(lines).requests, *given) if lines or not given else given


def seconds_of(span: float | str) -> float:
    """Return seconds. Raises UsageError."""
    if not isinstance(span, str):
        if not math.isfinite(span):  # a load would not end
            raise UsageError(f"{span} is not a span of time; give seconds, such as 10, or '10s'")
        return float(span)
    try:
        return amounts.seconds(span)
    except ValueError as error:
        raise UsageError(str(error)) from error


def budget_of(span: float | str) -> float:
    """Return the seconds that something may take. Raises UsageError."""
    found = math.inf if span == math.inf else seconds_of(span)
    if not found > 0:
        raise UsageError(f"budget={span}: it leaves no time to measure; give more than 0 s")
    return found


def limits_of(cpus: int | None, memory: str) -> Limits:
    """Return the limits of a server; `memory` is such as `"512MB"`. Raises UsageError."""
    if cpus is not None and cpus < 1:
        raise UsageError(f"cpus={cpus}: at least 1 is needed")
    try:
        return Limits.of(cpus, memory)
    except ValueError as error:
        raise UsageError(f"memory: {error}") from error


def conditions_of(slo: str | Sequence[str]) -> tuple[Condition, ...]:
    """Return what must hold. Raises UsageError."""
    return tuple(read_slo(text, of_app=True) for text in ((slo,) if isinstance(slo, str) else slo))


def link_of(link: str) -> Link | None:
    """Return the network between, written as `rtt=40ms,loss=1%`; None: it was not given. Raises UsageError."""
    try:
        return surroundings.read_link(link) if link else None
    except ValueError as error:
        raise UsageError(f"link: {error}") from error


def terms_of(
    limits: Limits,
    *,
    connections: int,
    rate: float | None,
    duration: float | str,
    link: str = "",
    **more: Any,
) -> Terms:
    """Return the terms of a race; `more` are fields of `Terms`. Raises UsageError for what makes no sense."""
    return Terms(connections, rate, limits, seconds=seconds_of(duration), link=link_of(link), **more)


RUNNING = "__main__"
OURS = "velodrome"
OF_TESTS = ("pytest", "_pytest", OURS)
"""Packages whose names stand in tests, and not in apps."""
BLOCKS = (ast.If, ast.Try, ast.With, ast.For, ast.While)


@dataclass(frozen=True)
class Holder:
    """A module that holds an app, and by which name."""

    module: ModuleType
    attribute: str

    @property
    def file(self) -> Path:
        """Its source."""
        return Path(str(self.module.__file__)).resolve()

    @property
    def is_test(self) -> bool:
        """Whether it is a file of tests: by its name, because it runs, or by what it imports."""
        stem = self.file.stem
        running = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
        named = stem.startswith("test_") or stem.endswith("_test") or stem in ("conftest", "tests")
        if named or (running and self.file.match(running)):
            return True
        return any(_origin(value).partition(".")[0] in OF_TESTS for value in list(vars(self.module).values()))

    @property
    def names_ours(self) -> bool:
        """Whether it has names from within velodrome (`from velodrome import ms`): a server process has none."""
        return any(_origin(value).startswith(f"{OURS}.") for value in list(vars(self.module).values()))

    @property
    def defines(self) -> bool:
        """Whether its source makes the app, and does not import it."""
        try:
            tree = ast.parse(self.file.read_bytes())
        except (OSError, SyntaxError, ValueError):  # no source
            return False
        return self.attribute in _names_bound(tree.body)

    @property
    def importable(self) -> tuple[str, str]:
        """`module:attribute`, and the folder it is imported from; empty where it is installed."""
        file, name = self.file, self.module.__name__
        parts = name.split(".")
        is_package = file.name == "__init__.py"
        ends = [*file.parts[: -2 if is_package else -1], file.parent.name if is_package else file.stem]
        if ends[-len(parts) :] != parts:
            # Imported by a name of its own: its file is a module all the same.
            return f"{ends[-1]}:{self.attribute}", str(Path(*ends[:-1]))
        root = Path(*ends[: -len(parts)])
        return f"{name}:{self.attribute}", "" if root in _library_folders() else str(root)


def locate_app(app: object) -> tuple[str, str]:
    """Return `module:attribute` of an app, and the folder that is imported from; empty where it is installed.

    Raises AppNotFoundError, AppInTestError or AppInProgramError, all UsageErrors.
    """
    holders = _holders(app)
    others = [holder for holder in holders if holder.module.__name__ != RUNNING]
    apps = [holder for holder in others if not holder.is_test]
    named = [getattr(app, "import_name", ""), getattr(app, "__module__", "")]
    # What says that it made it, then what does by its source, then what was imported first.
    apps.sort(key=lambda holder: (holder.module.__name__ not in named, not holder.defines))
    alone = [holder for holder in others if not holder.names_ours]
    if apps or alone:
        return (apps or alone)[0].importable
    if others:
        raise AppInTestError(_describe(app), str(others[0].file), others[0].attribute)
    if holders:
        raise AppInProgramError(_describe(app), str(holders[0].file), holders[0].attribute)
    raise AppNotFoundError(_describe(app))


def _holders(app: object) -> list[Holder]:
    modules = [
        module
        for module in list(sys.modules.values())
        if isinstance(module, ModuleType) and vars(module).get("__file__")
    ]
    return [
        Holder(module, name)
        for module in modules
        for name, value in list(vars(module).items())
        if value is app and not name.startswith("__")
    ]


def _describe(app: object) -> str:
    return repr(app)[:80]


def _origin(value: object) -> str:
    """Return the module that a function or a class is from; of a module its own name."""
    if isinstance(value, ModuleType):
        return value.__name__
    name = getattr(value, "__module__", "") if isinstance(value, FunctionType | type) else ""
    return name if isinstance(name, str) else ""


def _names_bound(statements: list[ast.stmt]) -> set[str]:
    """Return the names that a module gives to what it makes, at its top level."""
    found = set()
    for statement in statements:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(statement.name)
        elif isinstance(statement, BLOCKS):
            found |= _names_bound([child for child in _children(statement) if isinstance(child, ast.stmt)])
        else:
            names = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
            found |= {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return found


def _children(block: ast.stmt) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(block):
        yield child
        if isinstance(child, ast.ExceptHandler):
            yield from child.body


def _library_folders() -> set[Path]:
    """Return the folders that any process of this interpreter imports from."""
    paths = sysconfig.get_paths()
    known = [paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages()]
    return {Path(text).resolve() for text in known}


def folder_of(out: str | Path | None) -> Path:
    """Return where results go: without `out` a folder that is gone when this process ends."""
    return Path(out) if out is not None else scratch.make_folder("api") / "run"
