"""How a server is given a user's own app: what it loads, in which folder, with which variables."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace

from velodrome.guest.apps.finding import SETTINGS
from velodrome.guest.apps.served import APP_VARIABLE, AWAITED, FORM_VARIABLE
from velodrome.model.app import App, Request, ThirdParty, whole, withheld_third
from velodrome.model.errors import AppVariableError, WithheldAnswerError
from velodrome.model.secrets import MARK
from velodrome.run.apps import fingerprints
from velodrome.run.environments.environment import Environment
from velodrome.run.environments.interpreter import bytecode, path_with
from velodrome.run.servers import Serving

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


def serving(
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
    return fingerprints.of(full) == stored.fingerprint if stored.fingerprint else full == stored


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
