"""What to paste to deploy a user's own app as it was raced: a command line, and a file where it needs any.

python -m pip install gunicorn==27.0.1
python -m gunicorn --bind=127.0.0.1:8000 --workers=2 … shop.wsgi:application
"""

import re
import shlex
from collections.abc import Mapping

from velodrome.guest.stack import KnobValue, Launch, Process, Stack, Written
from velodrome.judge.deploying import deployed
from velodrome.model.app import App
from velodrome.model.trial import Contestant

HOST, PORT = "127.0.0.1", 8000
FILE = "serve"
"""Module that is written where servers cannot be given the app as it is; `.py` is its file."""
INSTALL = "python -m pip install"


def deploy(
    app: App, contestant: Contestant, stack: Stack, packages: Mapping[str, str], *, port: int = PORT
) -> str:
    """Return lines to paste; `packages` are the versions that it ran with, `port` is where it shall listen."""
    knobs = stack.settings(contestant.knobs)
    needed = _missing(app, stack, knobs, packages)
    names = variables_of(app)
    needs = [f"# needs in its environment: {', '.join(names)}"] if names else []
    install = [f"{INSTALL} {' '.join(needed)}"] if needed else []
    source = _source(app, stack)
    launch = Launch(HOST, port, f"{FILE}:app" if source else app.target(stack.interface), knobs, packages)
    if stack.script is not None:
        source = stack.script(launch, written(app, stack.interface))
        words = [*_variables(app, {}), f"python {FILE}.py"]
        return "\n".join([*install, *_file(source), *needs, " ".join(words)])
    process = stack.command(launch)
    line = _line(process, stack, app)
    if line is None:
        return f"velodrome stacks show {stack.name}"
    return "\n".join([*install, *(_file(source) if source else ()), *needs, line])


def variables_of(app: App) -> tuple[str, ...]:
    """Return the names of the environment variables that an app was given, those of its third parties among them."""
    return tuple(dict.fromkeys((*app.variables, *(party.variable for party in app.third_parties))))


def written(app: App, interface: str = "") -> Written:
    """Return how a program imports an app and names it, to a server of an interface: a Django site has two."""
    if app.form == "servicer":
        return _added(app)
    path = app.path
    if app.form == "django":
        path = app.target(interface or app.interface)
        if path.startswith("velodrome."):
            return _of_django(interface or app.interface)
    module, _, attribute = path.partition(":")
    name = re.split(r"[.(]", attribute, maxsplit=1)[0]
    called = app.form in ("factory", "coroutine") and not attribute.endswith(")")
    return Written(f"from {module} import {name}", attribute + ("()" if called else ""))


def _of_django(interface: str) -> Written:
    """Return how a program makes the application of a Django site that has no file for it."""
    make = f"get_{interface}_application"
    return Written(f"from django.core.{interface} import {make}", f"{make}()")


def _added(app: App) -> Written:
    """Return how a program adds a servicer to its server."""
    module, _, name = app.path.partition(":")
    adder_module, _, adder = app.target(app.interface).partition(":")
    if app.target(app.interface) == app.path:
        return Written(f"from {module} import {name}", f"{name}(server)")
    return Written(
        f"from {module} import {name}\nfrom {adder_module} import {adder}", f"{adder}({name}(), server)"
    )


def _file(source: str) -> list[str]:
    """Return the lines that write a file, as a shell takes them."""
    return [f"cat > {FILE}.py <<'END'", *source.splitlines(), "END"]


def _source(app: App, stack: Stack) -> str:
    """Return the module that a server gets instead of the app, or nothing where it takes the app itself."""
    app_is = written(app, stack.interface)
    own = app.form == "django" and app.target(stack.interface).startswith("velodrome.")
    if app.form == "factory" or own:
        return f"{app_is.imports}\n\napp = {app_is.expression}"
    if app.form == "coroutine":
        return (
            f"import asyncio\n\n{app_is.imports}\n\nmade = None\n\n\nasync def app(scope, receive, send):\n"
            f"    global made\n    made = made or asyncio.ensure_future({app_is.expression})\n"
            "    await (await asyncio.shield(made))(scope, receive, send)"
        )
    if app.form == "asgi2":
        return (
            f"{app_is.imports}\n\n\nasync def app(scope, receive, send):\n"
            f"    await {app_is.expression}(scope)(receive, send)"
        )
    return ""


def _line(process: Process, stack: Stack, app: App) -> str | None:
    """Return the command line, None where the server is code of velodrome's."""
    words = list(process.argv)
    if stack.stands_for and len(words) > 1:
        words[1] = stack.stands_for
    if any("velodrome" in word for word in words):
        return None
    return " ".join([*_variables(app, process.env), shlex.join(deployed(["python", *words], stack.server))])


def _variables(app: App, more: Mapping[str, str]) -> list[str]:
    """Return what stands before a command line: variables that it needs and whose values are no secret."""
    settings = {"PYTHONPATH": app.source} if app.source else {}
    settings |= {"DJANGO_SETTINGS_MODULE": app.path} if app.form == "django" else {}
    return [f"{name}={shlex.quote(value)}" for name, value in {**settings, **more}.items()]


def _missing(
    app: App, stack: Stack, knobs: Mapping[str, KnobValue], packages: Mapping[str, str]
) -> list[str]:
    """Return the stack's own packages that the app's environment lacks, in the versions that were raced.

    An event loop that was not chosen is not among them.
    """
    found = []
    spare = set(stack.choices.get("loop", ())) - {knobs.get("loop")}
    for line in stack.requires:
        name = re.split(r"[=\[;<>~! ]", line, maxsplit=1)[0]
        if name in spare:
            continue
        normal = re.sub(r"[-_.]+", "-", name).lower()
        if normal not in app.packages:
            found.append(f"{name}=={packages[normal]}" if normal in packages else shlex.quote(line))
    return found
