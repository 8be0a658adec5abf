"""Apps that the command's machine does not have: a host of the agents that are to serve them looks at them.

    if apps.only_hosts_have(spec, "tls://track:8786"):
        (app,), version = look_there([spec], "tls://track:8786", None, on, follower)

`python -m velodrome.usecases.look_on_hosts` is the process on the host. What it finds is an `App` as `apps.look` finds
it, with the paths of that host.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from velodrome.model.app import App
from velodrome.model.errors import AgentsRefuseRaceError, ExaminationRefusedError
from velodrome.model.results import adapter
from velodrome.run.cluster import blocks
from velodrome.run.environments.interpreter import find_interpreter
from velodrome.run.lab import OnHosts
from velodrome.run.supervision.undisturbed import stoppable
from velodrome.usecases.apps import (
    AppSpec,
    folder,
    look,
    may_hold_secrets,
    named_absolutely,
    sealed_requests,
)
from velodrome.usecases.events import Events

GIVEN = "looks"
"""What a host is given (`holding.RACES`)."""


def look_there(
    specs: Sequence[AppSpec], agents: str, keys: Path | None, on: OnHosts, follower: Events
) -> tuple[tuple[App, ...], str]:
    """Return what apps are on the host that serves them, and the version of the first one's interpreter there.

    That is the host named by `on`, else the first that is free.

    Raises ExaminationRefusedError for what is wrong with one there, AppVariableError, AgentsRefuseRaceError where no
    host is left, and what `race.reach_hosts` and `Hosts.begin_other` of `run/cluster/handing.py` do.
    """
    from velodrome.run.cluster import handing  # noqa: PLC0415 - brings Dask
    from velodrome.usecases import race  # noqa: PLC0415 - the process on a host has no need of it

    requests = [sealed_requests(spec) for spec in specs]
    secret = any(map(may_hold_secrets, specs))
    plain = [adapter(AppSpec).dump_python(named_absolutely(spec), mode="json") for spec in specs]
    needs = {"cwd": folder(specs[0].cwd), "user": specs[0].user}
    upcoming = iter([json.dumps({"apps": plain})])
    opened = partial(handing.hosts, wanted=on)
    with (
        stoppable(),
        race.reach_hosts(opened, agents, keys, user="", cwd="", allow_sdist=False) as hosts,
    ):
        hosts.begin_other(GIVEN, needs, secret=secret, follower=follower)
        for _, found in hosts.others(lambda: next(upcoming, None), str, follower):
            if isinstance(found, ExaminationRefusedError):
                raise found
            apps = adapter(tuple[App, ...]).validate_python(found["apps"])
            # A host withholds what is secret of requests by a key of its own.
            own = (replace(app, requests=mine) for app, mine in zip(apps, requests, strict=True))
            return tuple(own), found["version"]
        raise AgentsRefuseRaceError(agents, f"they are gone ({hosts.gone})")


# --- The process on a host.


class _Looking(blocks.Answering):
    """Looks at what it is given on this host."""

    def answer(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Look at apps."""
        found = tuple(look(adapter(AppSpec).validate_python(spec)) for spec in message["apps"])
        plain = adapter(tuple[App, ...]).dump_python(found, mode="json")
        return {"apps": plain, "version": find_interpreter(found[0].python).version}


if __name__ == "__main__":
    status = blocks.main(_Looking)
    sys.stdout.flush()
    sys.exit(status)
