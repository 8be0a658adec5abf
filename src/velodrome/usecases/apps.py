"""From what a user says of their app to the `App` that every question is about.

spec = AppSpec("shop.wsgi:application", python=".venv/bin/python", requests=(Request("cart", "/cart?id=7"),))
app = look(spec)
lab = lab_for(spec)
"""

import ast
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from velodrome.guest import catalog, plugins
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack
from velodrome.model import secrets
from velodrome.model.app import App, Request, ThirdParty, whole, withheld_third
from velodrome.model.app import register_secrets as masked
from velodrome.model.errors import (
    AppPathError,
    AppVariableError,
    BadOptionError,
    BrokenPluginError,
    InterpreterNotFoundError,
    NeedlessOptionError,
    NoStackFitsError,
    UnknownNameError,
    UsageError,
)
from velodrome.model.trial import Contestant
from velodrome.plan import surroundings
from velodrome.plan.requests.lines import Header, with_headers
from velodrome.run import account, third_party
from velodrome.run.apps import commands, inspect
from velodrome.run.apps.revisions import Revision
from velodrome.run.apps.serving import seal_request
from velodrome.run.environments import guest_tree
from velodrome.run.environments.environment import overlay_for
from velodrome.run.environments.interpreter import find_interpreter, path_with
from velodrome.run.lab import Lab
from velodrome.run.supervision.undisturbed import stoppable
from velodrome.run.third_party import answering
from velodrome.usecases.terms import Knobs

START_SECONDS = 30.0
"""To the first right answer: large sites import for several."""
ANYTHING = (Request("GET /", "/"),)
AS_ROOT = (
    "Everything runs as root, the app and what it imports too. Name an ordinary user for it: --user NAME"
)
INTERFACES = tuple(name for name, interface in catalog.interfaces().items() if interface.apps)
"""Through which servers call an app that is not velodrome's own; the others are of recipes."""


NEEDED = frozenset({"PATH", "HOME", "USER", "PWD", "SHELL", "TMPDIR", "LANG", "TZ", "VIRTUAL_ENV"})
NEEDED_ALIKE = ("PYTHON", "LD_", "LC_")
"""Variables that every process reads, and how others of them begin: none of them is the URL of a third party."""


@dataclass(frozen=True)
class AppSpec:
    """What a user says of their app, as the command line or the Python API has it."""

    app: str
    """`module:attribute`, `module`, `module:create_app('test')`, `shop.py:app`, or over Django the settings module."""
    python: str = ""
    """Path or version; empty: that of the active virtual environment, else the interpreter velodrome runs on."""
    cwd: str = ""
    """Empty: the current folder."""
    env: tuple[str, ...] = ()
    """`NAME=VALUE`, or `NAME` to hand on our own."""
    interface: str = ""
    """Empty: to be found out."""
    requests: tuple[Request, ...] = ()
    """Empty: `GET /`."""
    upstreams: tuple[str, ...] = ()
    """`PAYMENTS_URL=latency:lognormal(50ms,0.4)`."""
    proto: str = ""
    """The `.proto` file of a gRPC servicer."""
    revision: str = ""
    headers: tuple[Header, ...] = ()
    """That every request is to have. Their values are stored nowhere."""
    setup: str = ""
    """The user's command to run before, and after: `commands_around`."""
    teardown: str = ""
    user: str = ""
    """Whom it runs as where velodrome is root; empty: who called sudo, else the owner of `cwd`."""
    allow_sdist: bool = False
    """Whether what its servers need beside it may be built from source, which runs the packages' build code."""
    source: str = ""
    """Folder that it is imported from beside `cwd`; an app that is named by its file has it from there."""


def look(spec: AppSpec, revision: Revision | None = None) -> App:
    """Import an app in its own interpreter and return what it is; with a `revision`, all of it must be from there.

    Raises UsageError for all that is wrong with it.
    """
    thirds = third_parties(spec.upstreams)
    _refuse_two_values(thirds, spec)
    where = folder(spec.cwd)
    path, source = by_file(spec.app, where)
    python, interface, variables = (
        interpreter(spec.python),
        _interface(spec.interface),
        values(spec.env),
    )
    # Before anything of theirs runs: what it prints may hold the secrets of each of them.
    requests = sealed_requests(spec)
    named = App(
        path,
        interface,
        python,
        where,
        requests=requests,
        variables=tuple(variables),
        third_parties=tuple(map(withheld_third, thirds)),
        source=spec.source or source,
        revision=spec.revision,
        named_interface=interface,
        headers=_names_of_headers(spec),
    )
    found = inspect.look(
        named, {**variables, **{third.variable: inspect.NOBODY for third in thirds}}, revision
    )
    if found.form != "servicer":
        if spec.proto:
            raise NeedlessOptionError(
                ["--proto"], f"{path} is {found.what}, and only a gRPC servicer needs it"
            )
        return found
    _refuse_uncallable(spec)
    return replace(found, proto=os.path.abspath(spec.proto))


def sealed_requests(spec: AppSpec) -> tuple[Request, ...]:
    """Return all requests without what is secret of them; from now on that is masked in what is said.

    Raises WithheldHeaderError.
    """
    requests, names = in_full(spec), _names_of_headers(spec)
    masked(requests, names)
    return tuple(seal_request(request, names) for request in requests)


def _names_of_headers(spec: AppSpec) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name, _ in spec.headers))


def in_full(spec: AppSpec) -> tuple[Request, ...]:
    """Return all requests, with their headers, as they are sent. Raises WithheldHeaderError."""
    return whole(with_headers(spec.requests or ANYTHING, spec.headers))


def _refuse_two_values(thirds: Sequence[ThirdParty], spec: AppSpec) -> None:
    """Raise BadOptionError where a variable is to be the URL of a third party, and something else too."""
    given = {text.partition("=")[0] for text in spec.env}
    for third, text in zip(thirds, spec.upstreams, strict=True):
        if third.variable in given:
            raise BadOptionError(
                "--upstream", text, f"--env {third.variable} sets this variable too; give only one of them"
            )


def _refuse_uncallable(spec: AppSpec) -> None:
    """Raise BadOptionError where a servicer cannot be called: it needs its description, and one call."""
    if not spec.proto or not os.path.isfile(spec.proto):
        why = "there is no such file" if spec.proto else "a gRPC servicer needs its .proto file; name it"
        raise BadOptionError("--proto", spec.proto, why)
    how = "--request 'POST /package.Service/Method {\"id\": 1}'"
    if len(spec.requests) != 1:
        given = f"and these are {len(spec.requests)}" if spec.requests else "and none is named"
        raise BadOptionError("--request", "", f"a gRPC servicer needs exactly one call, {given}: {how}")
    (request,) = spec.requests
    if request.path.count("/") != 2:
        raise BadOptionError("--request", request.name, f"a gRPC servicer is called by its method: {how}")
    if request.expect_status is not None or request.expect_contains is not None:
        why = (
            "of a call a status and a part of the answer cannot be checked; leave them out, or give all of it"
        )
        raise BadOptionError(
            "--request", request.name, f"{why} as JSON in the expect-body of a --requests file"
        )


def lab_for(spec: AppSpec, extra: Sequence[str] = ()) -> Lab:
    """Return a lab that serves an app: it holds the values of its environment variables and headers, which nothing
    stores.

    `extra` are paths of stacks of the user's own.
    """
    return Lab(
        catalog.stacks(extra),
        guest_tree.export(extra),
        extra=tuple(extra),
        variables=values(spec.env),
        requests=in_full(spec),
        third_parties=third_parties(spec.upstreams),
        start_seconds=START_SECONDS,
        overlay=partial(overlay_for, allow_sdist=spec.allow_sdist),
    )


@contextmanager
def run_as(user: str, cwd: str, tell: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Run servers, apps, commands and third parties as an ordinary user until the block has ended, if there is one.

    `tell` gets a sentence where they run as root although nobody chose that. Raises AccountError.
    """
    found = account.account_for(user, folder(cwd) if cwd else "")
    if account.as_root_unnamed(user, found):
        tell(AS_ROOT)
    with account.acting_as(found):
        yield


def as_user_of(spec: AppSpec, tell: Callable[[str], None] = lambda _: None) -> AbstractContextManager[None]:
    """Run everything as the user of an app until the block has ended, as `run_as` does."""
    return run_as(spec.user, folder(spec.cwd), tell)


@contextmanager
def commands_around(spec: AppSpec, tell: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Run the user's commands before and after a block, where the app runs, with what it sees and as its user.

    SIGTERM and SIGHUP end the block as Ctrl-C does, so that the second runs then, too; `tell` gets a sentence on that,
    and what `run_as` says. Raises AccountError, InterpreterNotFoundError, AppVariableError, and what
    `commands.around` does.
    """
    where = folder(spec.cwd)
    with as_user_of(spec, tell):
        path = path_with(interpreter(spec.python), os.environ.get("PATH", ""))
        variables = {"PATH": path, **values(spec.env)}
        secrets.of_environment(os.environ)  # which they see too
        with stoppable(), commands.around(spec.setup, spec.teardown, where, variables, tell=tell):
            yield


@dataclass(frozen=True)
class ServedSpec:
    """What is served: an app, or a recipe in its place."""

    app: AppSpec | None = None
    recipe: str = ""
    """Name of a recipe that ships."""
    python: str = ""
    """Interpreter of a recipe's servers; an app has its own."""
    user: str = ""
    """Whom the servers of a recipe run as; an app has its own."""


@dataclass(frozen=True)
class Served:
    """What is served, and where it can be."""

    recipe: Recipe
    app: App | None
    lab: Lab
    python: str = ""

    @property
    def label(self) -> str:
        """For a title."""
        return f"{self.recipe.name}: {self.recipe.about}"


@contextmanager
def prepare_app(
    spec: ServedSpec,
    extra: Sequence[str] = (),
    tell: Callable[[str], None] = lambda _: None,
    *,
    commands: bool = True,
) -> Iterator[Served]:
    """Look at the app, run its user's commands around the block, and yield it; or yield the recipe.

    `extra` are paths of stacks of the user's own. Without `commands` these do not run.
    Raises UsageError for all that is wrong with it.
    """
    if spec.app is None:
        with run_as(spec.user, "", tell):
            lab = Lab(catalog.stacks(extra), guest_tree.export(extra), extra=tuple(extra))
            yield Served(_recipe(spec.recipe), None, lab, spec.python)
        return
    with commands_around(spec.app, tell) if commands else as_user_of(spec.app, tell):
        app = look(spec.app)
        yield Served(app.recipe, app, lab_for(spec.app, extra))


def _recipe(name: str) -> Recipe:
    known = catalog.recipes()
    if name not in known:
        raise UnknownNameError("recipe", name, tuple(known))
    return known[name]


def say_unread(found: Sequence[App | None], stacks: Sequence[Stack], tell: Callable[[str], None]) -> None:
    """Say which settings of the user's own do not act while these stacks are compared."""
    every = (unread_settings(app, stacks) for app in found if app is not None)
    for sentence in dict.fromkeys(filter(None, every)):
        tell(sentence)


def stacks_for(app: App, lab: Lab, only: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of the stacks that can serve an app, or of those in `only` that can.

    Stacks of one framework's own recipes (`flask-gunicorn-sync`) are not meant: they bring their own app. Raises
    UnknownNameError, NoStackFitsError.
    """
    fits = tuple(stack.name for stack in servers_of(lab.stacks.values(), app.interfaces))
    for name in only:
        if name not in lab.stacks:
            raise UnknownNameError("stack", name, tuple(lab.stacks))
    unfit = [name for name in only if name not in fits]
    if unfit or not fits:
        raise NoStackFitsError(app.path, app.interfaces, unfit, fits)
    return tuple(only) or fits


def common(stacks: Sequence[str]) -> str:
    """Return the stack that is taken where nobody names it: the usual stack of the app's interface."""
    every = catalog.stacks()
    return next((stack for stack in stacks if stack in every and every[stack].usual), stacks[0])


def common_first(stacks: Iterable[Stack]) -> tuple[Stack, ...]:
    """Return stacks with the usual before the others; else they stay in their order."""
    return tuple(sorted(stacks, key=lambda stack: not stack.usual))


def refuse_unknown(stack: str, knobs: Knobs) -> None:
    """Raise UnknownNameError, BrokenPluginError, UnknownKnobError or BadOptionError for what no stack is or has."""
    (name,), extra = split_stacks((stack,))
    stacks = catalog.stacks(extra)
    if name not in stacks:
        raise UnknownNameError("stack", name, tuple(stacks))
    knobs.of(stacks[name])


@contextmanager
def prepare_on(
    spec: ServedSpec, stack: str, knobs: Knobs, tell: Callable[[str], None], *, commands: bool = True
) -> Iterator[tuple[Served, Contestant]]:
    """Yield as `prepare_app` does, with the stack that is named, or else is usual for the app, and its settings.

    What no stack is or has is refused before anything is imported or run (`refuse_unknown`). Raises NoStackFitsError.
    """
    if stack:
        refuse_unknown(stack, knobs)
    names, extra = split_stacks((stack,) if stack else ())
    with prepare_app(spec, extra, tell, commands=commands) as served:
        able = stacks_for(served.app, served.lab, names) if served.app else names or tuple(served.lab.stacks)
        name = common(able)
        if names:
            say_unread((served.app,), (served.lab.stacks[name],), tell)
        yield served, Contestant(name, knobs.of(served.lab.stacks[name]))


def servers_of(stacks: Iterable[Stack], interfaces: Sequence[str]) -> tuple[Stack, ...]:
    """Return the stacks that call an app by one of these interfaces."""
    return tuple(stack for stack in stacks if stack.interface in interfaces)


def split_stacks(stacks: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of stacks, of which some may be given as files (`./mine.py`), and the paths of these.

    Raises BrokenPluginError for a file that holds none.
    """
    extra = tuple(path for path in stacks if path.endswith(".py"))
    by_origin = {found.origin: found for found in plugins.entries(catalog.STACK, extra)}
    names = []
    for stack in stacks:
        if stack not in extra:
            names.append(stack)
            continue
        entry = by_origin.get(stack)
        if entry is None or entry.error:
            raise BrokenPluginError(
                "stack", stack, entry.error if entry else "another file has a stack of its name"
            )
        names.append(entry.name)
    return tuple(names), extra


def interpreter(python: str) -> str:
    """Return the path of the interpreter meant, not followed to that which an environment was made of.

    Raises InterpreterNotFoundError.
    """
    if not python:
        active = os.environ.get("VIRTUAL_ENV")
        return str(Path(active) / "bin" / "python") if active else sys.executable
    path = Path(python).expanduser()
    if os.sep not in python and not path.is_dir():
        return str(find_interpreter(python).path)
    if path.is_dir():  # an environment is meant
        path = path / "bin" / "python"
    if not path.exists():
        raise InterpreterNotFoundError(python, "there is no such file")
    return os.path.abspath(path)


def refuse_commands_beside(agents: str, spec: AppSpec | None) -> None:
    """Raise UsageError for commands around an app that agents serve: the command's machine is not theirs."""
    if agents and spec is not None and (spec.setup or spec.teardown):
        raise UsageError(
            "--setup and --teardown run on this machine, and with --agents the servers do not; run them on each host "
            "beforehand, and leave them out"
        )


def only_hosts_have(spec: AppSpec, agents: str) -> bool:
    """Whether an app can only be on the hosts of agents: they are not of this machine, and its folder is not here."""
    from velodrome.run.cluster.address import count_local  # noqa: PLC0415 - most apps are served here

    return bool(agents) and count_local(agents) is None and not os.path.isdir(folder(spec.cwd))


def named_absolutely(spec: AppSpec) -> AppSpec:
    """Return what is said of an app as another host understands it: whole paths, and values in place of names of
    variables. Its interpreter may be there only. Raises AppVariableError, InterpreterNotFoundError."""
    python = spec.python or os.environ.get("VIRTUAL_ENV", "")
    path = Path(python).expanduser()
    if os.sep in python and not path.exists():
        python = os.path.abspath(path)
    elif python:
        python = interpreter(spec.python)
    return replace(
        spec,
        cwd=folder(spec.cwd),
        python=python,
        env=tuple(f"{name}={value}" for name, value in values(spec.env).items()),
        proto=os.path.abspath(spec.proto) if spec.proto else "",
    )


def may_hold_secrets(spec: AppSpec) -> bool:
    """Whether what is said of an app may hold secrets: values of its variables, or what is withheld of a request."""
    withheld = any(request.fingerprint for request in sealed_requests(spec))
    return withheld or bool(spec.env or spec.upstreams)


def folder(cwd: str) -> str:
    """Return the folder an app runs in."""
    return os.path.abspath(os.path.expanduser(cwd) if cwd else os.getcwd())


def values(env: Sequence[str]) -> dict[str, str]:
    """Return environment variables by name. Raises AppVariableError."""
    found = {}
    for text in env:
        name, equals, value = text.partition("=")
        if not name:
            raise AppVariableError("", "it has no name")
        if not equals and name not in os.environ:
            raise AppVariableError(name, "it is not set here")
        found[name] = value if equals else os.environ[name]
        secrets.of_variable(name, found[name])
    return found


def third_parties(upstreams: Sequence[str]) -> tuple[ThirdParty, ...]:
    """Return the simulated third parties named. Raises BadOptionError."""
    found = tuple(map(surroundings.read_third_party, upstreams))
    seen: set[str] = set()
    for third, text in zip(found, upstreams, strict=True):
        if third.variable in seen:
            why = f"{third.variable} is given twice; a variable is the URL of one third party"
            raise BadOptionError("--upstream", text, why)
        if third.variable in NEEDED or third.variable.startswith(NEEDED_ALIKE):
            why = f"the process itself needs {third.variable}; name the variable in which the app finds a URL"
            raise BadOptionError("--upstream", text, why)
        seen.add(third.variable)
        try:
            with third_party.serve_here({"host": "127.0.0.1", "port": 0, **answering(third)}):
                pass  # it can be had
        except UsageError as error:
            raise BadOptionError("--upstream", text, str(error)) from error
    return found


def _interface(interface: str) -> str:
    if interface and interface not in INTERFACES:
        raise BadOptionError("--interface", interface, f"apps are called through {', '.join(INTERFACES)}")
    return interface


def by_file(app: str, cwd: str) -> tuple[str, str]:
    """Return `module:attribute` and the folder it is imported from beside `cwd`, if that is another.

    Raises AppPathError for a file that is not there.
    """
    name, colon, attribute = app.partition(":")
    if not name.endswith(".py"):
        return app, ""
    file = Path(name).expanduser()
    whole = Path(cwd, file)
    if not whole.is_file():
        raise AppPathError(app, f"there is no file {whole}")
    parts = [] if whole.name == "__init__.py" else [whole.stem]
    folder, above = file.parent, _above(whole)
    while (Path(cwd, folder) / "__init__.py").is_file() or len(parts) <= above:
        inside = Path(cwd, folder)
        if inside.parent == inside:
            break
        parts.insert(0, inside.resolve().name)
        folder = folder.parent if folder.name not in ("", "..") else folder / ".."
    module = ".".join(parts)
    if not all(part.isidentifier() for part in parts):
        raise AppPathError(app, f"'{module}' is no name of a module")
    same = os.path.realpath(Path(cwd, folder)) == os.path.realpath(cwd)
    return module + colon + attribute, "" if same else str(folder)


def _above(file: Path) -> int:
    """Return how many packages above it a file imports from: one for `from . import`, two for `from .. import`."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):  # it is reported when it is imported
        return 0
    return max((node.level for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)), default=0)


def unread_settings(app: App, stacks: Sequence[Stack]) -> str:
    """Return a sentence for whoever has such settings and one of these stacks would read them; else nothing."""
    servers = {stack.server.module: stack.server for stack in stacks if stack.server is not None}
    sentences = []
    for server in servers.values():
        file, variable = server.reads
        found = [f"./{file}"] if file and (Path(app.cwd) / file).is_file() else []
        found += [variable] if variable in app.variables else []
        if found:
            sentences.append(
                f"{' and '.join(found)} {'are' if len(found) > 1 else 'is'} not read while stacks are compared: "
                f"{server.module} runs with the settings that are shown and no others. A command line that is pasted "
                "there reads it again, and wins where both set the same"
            )
    return ". ".join(sentences)
