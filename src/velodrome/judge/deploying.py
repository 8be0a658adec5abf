"""The command line to paste: what was run here, made general, and for what it was measured.

Every line that is to be deployed is made here. It is the line that was measured but for the
address and what its server declares as `race_only`: how long requests get when it is stopped, and its own log.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise

from velodrome.guest import catalog
from velodrome.guest.stack import KnobValue, Launch, Process, Server, Stack, Written
from velodrome.model import quantity
from velodrome.model.app import App
from velodrome.model.measurement import SHARED_NOTED, Measurement
from velodrome.model.trial import Contestant

_ADDRESS = re.compile(r"(127\.0\.0\.1|localhost|\[::1\]):(\d{2,5})")
_APP = re.compile(r"velodrome\.guest\.interfaces\.\w+:(\w+)")
HOST, PORT = "127.0.0.1", 8000
"""Where a server listens whose line is pasted."""


def deploy(command: Sequence[str], stack: str) -> str:
    """Return a server's command line with its own app, host and port replaced.

    Where the server is code of velodrome's there is no such line; then how to see that code.
    """
    look = f"velodrome stacks show {stack}"
    if not command:
        return look
    port = _port_of(command)
    words = ["python"]
    previous = ""
    of = catalog.stacks().get(stack)
    for word in command[1:]:
        if of is not None and of.stands_for and word.startswith("velodrome.guest.stacks."):
            word = of.stands_for  # noqa: PLW2901 - a program of ours that takes the same options
        general = _APP.sub(r"yourmodule:\1", word)
        general = _ADDRESS.sub(f"{HOST}:{PORT}", general)
        if port and (previous in ("--port", "-p") and word == port):
            general = str(PORT)
        elif port:
            general = re.sub(rf"\bport={port}\b", f"port={PORT}", general)
        words.append(general)
        previous = word
    return look if any("velodrome" in word for word in words) else shlex.join(without_race_options(words))


def without_race_options(words: Sequence[str], server: Server | None = None) -> list[str]:
    """Return the words of a command line (`python -m server …`) without the options that only a race needs.

    `server` is what its stack declares of the server; None: that is looked up in the catalog.
    """
    if server is None and len(words) > 2 and words[1] == "-m":
        server = catalog.servers().get(words[2])
    left_out = server.has_value if server is not None else {}
    found: list[str] = []
    is_value = False
    for word in words:
        option, equals, _ = word.partition("=")
        if option in left_out:
            is_value = left_out[option] and not equals
        elif not is_value:
            found.append(word)
        else:
            is_value = False
    return found


def circumstances(measured: Measurement, server: Server | None) -> str:
    """Return for what a command line was measured, to stand as a comment above it: CPUs, memory, access log."""
    shared = ", which the load generator shared" if measured.shared_share >= SHARED_NOTED else ""
    limit = measured.trial.limits.memory_bytes
    memory = f" and at most {quantity.memory(limit)}" if limit is not None else ""
    log = ""
    if server is not None:
        known = server.access_log.removeprefix("off, ") if server.access_log != "none" else ""
        log = f" Access log off, as measured{f'; {known}' if known else ''}."
    scope, semicolon, more = measured.scope.partition(";")
    return f"Measured {scope}{shared}{memory}{semicolon}{more}.{log}"


def with_comment(pasted: str, measured: Measurement | None, server: Server | None) -> str:
    """Return what is pasted below a comment that says for what it was measured; as it is where it starts nothing."""
    if measured is None or not starts_something(pasted):
        return pasted
    return f"# {circumstances(measured, server)}\n{pasted}"


def starts_something(pasted: str) -> bool:
    """Return whether lines to paste start a server; else they only say where to look."""
    return bool(pasted) and not pasted.rpartition("\n")[2].startswith("velodrome ")


def _port_of(command: Sequence[str]) -> str | None:
    """Return the port a command listens on, wherever it stands."""
    for flag, word in pairwise(command):
        if flag in ("--port", "-p") and word.isdigit():
            return word
    text = " ".join(command)
    match = re.search(r"\bport=(\d+)", text)
    if match:
        return match[1]
    address = _ADDRESS.search(text)
    return address[2] if address else None


FILE = "serve"
"""Module that is written where servers cannot be given the app as it is; `.py` is its file."""
INSTALL = "python -m pip install"


def deploy_app(
    app: App, contestant: Contestant, stack: Stack, packages: Mapping[str, str], *, port: int = PORT
) -> str:
    """Return lines to paste; `packages` are the versions that it ran with, `port` is where it shall listen."""
    knobs = stack.settings(contestant.knobs)
    needed = _missing_packages(app, stack, knobs, packages)
    names = variables_of(app)
    needs = [f"# needs in its environment: {', '.join(names)}"] if names else []
    install = [f"{INSTALL} {' '.join(needed)}"] if needed else []
    source = _source(app, stack)
    launch = Launch(HOST, port, f"{FILE}:app" if source else app.target(stack.interface), knobs, packages)
    if stack.script is not None:
        source = stack.script(launch, import_lines(app, stack.interface))
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


def import_lines(app: App, interface: str = "") -> Written:
    """Return how a program imports an app and names it, to a server of an interface: a Django site has two."""
    if app.form == "servicer":
        return _servicer_lines(app)
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


def _servicer_lines(app: App) -> Written:
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
    app_is = import_lines(app, stack.interface)
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
    return " ".join(
        [*_variables(app, process.env), shlex.join(without_race_options(["python", *words], stack.server))]
    )


def _variables(app: App, more: Mapping[str, str]) -> list[str]:
    """Return what stands before a command line: variables that it needs and whose values are no secret."""
    settings = {"PYTHONPATH": app.source} if app.source else {}
    settings |= {"DJANGO_SETTINGS_MODULE": app.path} if app.form == "django" else {}
    return [f"{name}={shlex.quote(value)}" for name, value in {**settings, **more}.items()]


def _missing_packages(
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
