"""Where an app is found: its import path, or that of the object a caller holds, for a server process to import."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from velodrome.model.errors import AppNotFoundError
from velodrome.model.request import Request
from velodrome.plan.asked.headers import Header, checked
from velodrome.track.apps import Asked

Headers = Mapping[str, str] | Sequence[Header]
"""By name, or pairs of name and value, where one is given several times."""


def asked_of(
    app: object,
    requests: tuple[Request, ...],
    *,
    python: str = "",
    cwd: str = "",
    env: Sequence[str] = (),
    interface: str = "",
    upstreams: Sequence[str] = (),
    proto: str = "",
    headers: Headers = (),
    setup: str = "",
    teardown: str = "",
) -> Asked:
    """Return what is asked of an app, told by its import path or given as an object.

    `python` is its interpreter (the one running, unless told), `cwd` its folder, `env` variables as `NAME=value`,
    `interface` how it is called where that cannot be seen, `upstreams` third parties to simulate, as
    `PAYMENTS_URL=latency:50ms`, `proto` the file that describes a gRPC servicer; `headers` of every request, such as
    `{"Host": "shop.example"}`, whose values are stored nowhere; `setup` and `teardown` commands that run before and
    after.
    Raises AppNotFoundError for an object that no module holds, HeaderError.
    """
    if isinstance(app, str):
        path, folder = app, cwd
    else:
        path, found = _of_object(app)
        folder = cwd or found
    return Asked(
        path,
        python or sys.executable,
        folder,
        tuple(env),
        interface,
        requests,
        tuple(upstreams),
        proto,
        headers=checked(headers),
        setup=setup,
        teardown=teardown,
    )


def _of_object(app: object) -> tuple[str, str]:
    """Return `module:attribute` of an object, and the folder from which that can be imported."""
    for module in _likely(app):
        for name, value in list(vars(module).items()):
            if value is app and not name.startswith("__"):
                return _importable(module, name)
    raise AppNotFoundError(repr(app)[:80])


def _likely(app: object) -> list[ModuleType]:
    """Return the modules that may hold an app, the one that says it made it first."""
    named = [getattr(app, name, None) for name in ("import_name", "__module__")]
    first = [sys.modules[name] for name in named if isinstance(name, str) and name in sys.modules]
    return [*first, *(one for one in list(sys.modules.values()) if getattr(one, "__file__", None))]


def _importable(module: ModuleType, attribute: str) -> tuple[str, str]:
    file = Path(str(module.__file__)).resolve()
    parts = module.__name__.split(".")
    place = file.parent if file.name != "__init__.py" else file.parent.parent
    ends = [*place.parts, file.stem if file.name != "__init__.py" else file.parent.name]
    if ends[-len(parts) :] == parts and module.__name__ != "__main__":
        root = Path(*ends[: -len(parts)])
        return f"{module.__name__}:{attribute}", str(root)
    # Run as a program, or imported by a name of its own: its file is a module all the same.
    return f"{file.stem}:{attribute}", str(file.parent)
