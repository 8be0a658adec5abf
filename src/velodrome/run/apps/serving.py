"""How a server is given a user's own app: what it loads, in which folder, with which variables."""

import hashlib
import hmac
import json
import os
import re
import secrets as chance
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from velodrome.guest.apps.finding import SETTINGS
from velodrome.guest.apps.served import APP_VARIABLE, AWAITED, FORM_VARIABLE
from velodrome.model.app import App, Request, ThirdParty, whole, withheld, withheld_third
from velodrome.model.errors import AppVariableError, OutputError, WithheldAnswerError
from velodrome.model.secrets import MARK
from velodrome.run import cache
from velodrome.run.environments.environment import Environment
from velodrome.run.environments.interpreter import bytecode, path_with
from velodrome.run.servers import Serving

FOLDER, NAME = "secrets", "fingerprint.key"
KEY_BYTES = 32
LENGTH = 24
"""Hexadecimal digits of a fingerprint, behind KNOWN of its key and a colon."""
KNOWN = 8


def seal_request(request: Request, names: Collection[str] = ()) -> Request:
    """Return a request as it may be stored and shown, with its fingerprint where something of it is withheld."""
    shown = withheld(request, names)
    return shown if shown == request else replace(shown, fingerprint=of(request))


def of(request: Request) -> str:
    """Return the fingerprint of a whole request: of its key, and of itself. Raises OutputError."""
    key = _key()
    text = json.dumps(asdict(replace(request, fingerprint="")), sort_keys=True).encode()
    return f"{_digest(key, b'key')[:KNOWN]}:{_digest(key, text)[:LENGTH]}"


def _digest(key: bytes, text: bytes) -> str:
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _key() -> bytes:
    """Return the key of this user, made at first use; only they can read it."""
    path = cache.folder(FOLDER) / NAME
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = b""
    if len(key) == KEY_BYTES:
        return key
    try:
        return _made(path, torn=bool(key))
    except OSError as error:
        raise OutputError(str(path), os.strerror(error.errno or 0)) from error


def _made(path: Path, *, torn: bool) -> bytes:
    # Written whole under a name of its own: of two that begin at once, both take the one that was linked first.
    own = path.with_name(f"{NAME}.{os.getpid()}.{chance.token_hex(4)}")
    number = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(number, chance.token_bytes(KEY_BYTES))
        os.fsync(number)
        if torn:
            os.replace(own, path)
        else:
            with suppress(FileExistsError):  # another was first
                os.link(own, path)
    finally:
        os.close(number)
        own.unlink(missing_ok=True)
    return path.read_bytes()


MADE = "velodrome.guest.apps.served:app"
MADE_HERE = {
    "factory": MADE,
    "coroutine": MADE,
    "asgi2": MADE,
    "servicer": "velodrome.guest.apps.served:servicer",
}
"""Forms that servers cannot load by themselves, or only some, each by a switch of its own; and what loads them here."""


def import_target(app: App, interface: str) -> str:
    """Return the `module:attribute` that a server of an interface loads."""
    return MADE_HERE.get(app.form) or app.target(interface)


def serving_app(
    plain: Serving,
    app: App,
    environment: Environment,
    values: Mapping[str, str],
    urls: Mapping[ThirdParty, str],
) -> Serving:
    """Return how an app is served, given how a recipe would be in its place.

    `values` are those of the variables its user sets; `urls` those of its simulated third parties, which win.
    Raises AppVariableError.
    """
    for name in app.variables:
        if name not in values:
            raise AppVariableError(name, "its value is not known here")
    interface = plain.stack.interface
    variables = {
        "PATH": path_with(app.python, os.environ.get("PATH", "")),
        "PYTHONPYCACHEPREFIX": str(bytecode(app.python, app.cwd)),
        **{name: values[name] for name in app.variables},
        **{third_party.variable: url for third_party, url in urls.items()},
        **({SETTINGS: app.path} if app.form == "django" else {}),
        **({APP_VARIABLE: app.path, FORM_VARIABLE: _form(app, interface)} if app.form in MADE_HERE else {}),
        "PYTHONPATH": import_path(app.source, values["PYTHONPATH"] if "PYTHONPATH" in app.variables else ""),
    }
    return replace(
        plain,
        app=import_target(app, interface),
        packages=environment.packages,
        cwd=app.cwd,
        variables=variables,
        call=app.requests[0].path if app.proto else "",
    )


def with_whole_requests(app: App, requests: Sequence[Request]) -> App:
    """Return an app with its requests in full: `requests`, where they are the app's own but for what is withheld.

    Raises WithheldHeaderError or WithheldRequestError where what is withheld is not known here.
    """
    same = len(requests) == len(app.requests) and all(map(_same, requests, app.requests))
    return replace(app, requests=whole(requests if same else app.requests))


def _same(full: Request, stored: Request) -> bool:
    """Return whether a request is the one stored, of which secrets may be withheld."""
    return of(full) == stored.fingerprint if stored.fingerprint else full == stored


def answering(app: App, thirds: Sequence[ThirdParty]) -> tuple[ThirdParty, ...]:
    """Return the third parties of an app in full: `thirds`, where they are its own but for what is withheld.

    Raises WithheldAnswerError where what is withheld is not known here.
    """
    if tuple(map(withheld_third, thirds)) == app.third_parties:
        return tuple(thirds)
    for party in app.third_parties:
        if party.body is not None and MARK in party.body.text:
            raise WithheldAnswerError(party.variable)
    return app.third_parties


def import_path(source: str, theirs: str) -> str:
    """Return the PYTHONPATH of an app: the folder its module is imported from, then what its user sets."""
    return os.pathsep.join(filter(None, (source, theirs)))


def _form(app: App, interface: str) -> str:
    """Return how what its user named is made: aiohttp awaits by itself what has to be awaited."""
    return AWAITED if app.form == "coroutine" and interface == "asgi" else app.form


INSTALLS = "python -m pip install "
_WRITES = re.compile(r"^cat > (\S+) <<'END'$", re.MULTILINE)


def unlike(lines: str, packages: Mapping[str, str]) -> str:
    """Return which packages would be installed in other versions than those that are there; empty: none."""
    first = lines.partition("\n")[0]
    pins = shlex.split(first.removeprefix(INSTALLS)) if first.startswith(INSTALLS) else []
    named = (pin.partition("==") for pin in pins)
    other = [f"{name}=={version}" for name, _, version in named if packages.get(_normal(name)) != version]
    return ", ".join(other)


def _normal(name: str) -> str:
    """Return a package's name as environments list it, without extras."""
    return re.sub(r"[-_.]+", "-", name.partition("[")[0]).lower()


def script(lines: str, folder: str = "") -> str:
    """Return what a POSIX shell is given: the lines without those that install, and the server in the shell's place.

    With a `folder`, everything in it is linked into the current folder first; what the lines write replaces a link.
    """
    every = lines.split("\n")
    if every[0].startswith(INSTALLS):
        del every[0]
    links = []
    if folder:
        inside = shlex.quote(folder)
        links = [f'for one in {inside}/* {inside}/.[!.]*; do if [ -e "$one" ]; then ln -s "$one" .; fi; done']
        links += [f"rm -f {shlex.quote(name)}" for name in _WRITES.findall(lines)]
    return "\n".join([*links, *every[:-1], f"exec env {every[-1]}"])


def as_it_stands(raced: Serving, app: App, lines: str, environment: Environment) -> Serving:
    """Return how the lines are run, given how the app is served in a race."""
    theirs = (*app.variables, *(party.variable for party in app.third_parties))
    # Where the interpreter keeps bytecode is no part of what is measured, and their folder stays as it is.
    kept = {name: raced.variables[name] for name in (*theirs, "PYTHONPYCACHEPREFIX")}
    path = os.pathsep.join([str(environment.python.parent), raced.variables["PATH"]])
    writes = bool(_WRITES.search(lines))
    return replace(
        raced,
        cwd="" if writes else app.cwd,
        variables={**kept, "PATH": path},
        shell=script(lines, app.cwd if writes else ""),
    )
