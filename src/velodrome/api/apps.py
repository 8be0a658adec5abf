"""What is asked of an app: named by its import path, or given as the object a caller holds."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from velodrome.api.holding import held
from velodrome.model import secrets as known_secrets
from velodrome.model.app import Request
from velodrome.plan.asked.headers import Header, checked
from velodrome.track.apps import Asked, folder

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
    user: str = "",
    allow_sdist: bool = False,
    secrets: Sequence[str] = (),
) -> Asked:
    """Return what is asked of an app, told by its import path or given as an object.

    `python` is its interpreter (the one running, unless told), `cwd` its folder, `env` variables as `NAME=value`,
    `interface` how it is called where that cannot be seen, `upstreams` third parties to simulate, as
    `PAYMENTS_URL=latency:50ms`, `proto` the file that describes a gRPC servicer; `headers` of every request, such as
    `{"Host": "shop.example"}`, whose values are stored nowhere; `setup` and `teardown` commands that run before and
    after; `user` whom all of it runs as where this process is root (who called sudo, else the owner of `cwd`);
    `allow_sdist` lets packages that servers need be built from source, which runs their build code; `secrets` are names
    of variables, headers, parameters and fields whose values are masked however short they are.
    An object runs in the folder its module is imported from, unless `cwd` names another. Raises AppNotFoundError,
    AppInTestError and AppInProgramError for one that no module holds which a server could import, and HeaderError.
    """
    known_secrets.mark(secrets)
    path, source = (app, "") if isinstance(app, str) else held(app)
    if not cwd or (source and Path(source) == Path(folder(cwd)).resolve()):
        cwd, source = cwd or source, ""
    return Asked(
        path,
        python or sys.executable,
        cwd,
        tuple(env),
        interface,
        requests,
        tuple(upstreams),
        proto,
        headers=checked(headers),
        setup=setup,
        teardown=teardown,
        user=user,
        allow_sdist=allow_sdist,
        source=source,
    )
