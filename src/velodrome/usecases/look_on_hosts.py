"""Apps that the command's machine does not have: a host of the agents that are to serve them looks at them.

    if apps.is_elsewhere(spec, "tls://track:8786"):
        (app,), version = look_there([spec], "tls://track:8786", None, follower)

`python -m velodrome.usecases.look_on_hosts` is the process on the host. What it finds is an `App` as `apps.look` finds
it, with the paths of that host.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from velodrome.model import secrets
from velodrome.model.app import App
from velodrome.model.errors import AgentsRefuseRaceError, ExaminationRefusedError, VelodromeError
from velodrome.model.results import adapter
from velodrome.run.apps.serving import seal_request
from velodrome.run.cluster import blocks
from velodrome.run.cluster.apart import Channel
from velodrome.run.environments.interpreter import find_interpreter
from velodrome.run.lab import OnHosts
from velodrome.run.supervision.undisturbed import stoppable
from velodrome.usecases.apps import AppSpec, folder, in_full, look, may_hold_secrets, named_absolutely
from velodrome.usecases.quiet import Quiet

GIVEN = "looks"
"""What a host is given (`holding.RACES`)."""
BY_ROLES = OnHosts()


def look_there(
    specs: Sequence[AppSpec], agents: str, keys: Path | None, follower: Quiet, on: OnHosts = BY_ROLES
) -> tuple[tuple[App, ...], str]:
    """Return what apps are on the host that serves them, and the version of the first one's interpreter there.

    That is the host named by `on`, else the first that is free.

    Raises ExaminationRefusedError for what is wrong with one there, AppVariableError, AgentsRefuseRaceError where no
    host is left, and what `race.reach_hosts` and `Hosts.begin_other` of `run/cluster/handing.py` do.
    """
    from velodrome.run.cluster import handing  # noqa: PLC0415 - brings Dask
    from velodrome.usecases import race  # noqa: PLC0415 - would import in a circle

    needs = {"cwd": folder(specs[0].cwd), "user": specs[0].user}
    begun = json.dumps({"given": GIVEN, "needs": needs, "marked": list(secrets.marked_names())})
    plain = [adapter(AppSpec).dump_python(named_absolutely(spec), mode="json") for spec in specs]
    line = json.dumps({"apps": plain})
    upcoming = iter([line])
    with (
        stoppable(),
        race.reach_hosts(
            partial(handing.hosts, wanted=on), agents, keys, user="", cwd="", allow_sdist=False
        ) as hosts,
    ):
        hosts.begin_other(begun, secret=any(map(may_hold_secrets, specs)), follower=follower)
        for agent, _, event in hosts.others(lambda: next(upcoming, None), str, follower):
            if "apps" not in event:
                raise ExaminationRefusedError(agent, event["reason"], event["exit_code"])
            found = adapter(tuple[App, ...]).validate_python(event["apps"])
            return tuple(map(_sealed_here, found, specs)), event["version"]
        raise AgentsRefuseRaceError(agents, f"they are gone ({hosts.gone})")


def _sealed_here(app: App, spec: AppSpec) -> App:
    """Return an app with its requests withheld by the key of this machine, where those of its host had another."""
    names = tuple(dict.fromkeys(name for name, _ in spec.headers))
    return replace(app, requests=tuple(seal_request(request, names) for request in in_full(spec)))


# --- The process on a host.


class _Looking:
    """Looks at what it is given on this host."""

    pythons: Mapping[str, str] = {}
    """None is compared: those that serve the app are."""

    def __init__(
        self, message: Mapping[str, Any], say: Callable[[dict[str, Any]], None], _channel: Channel
    ) -> None:
        secrets.mark(message["marked"])
        self._say = say

    def run(self, message: Mapping[str, Any]) -> None:
        """Look at apps, and say what they are, or why they cannot be looked at."""
        try:
            found = [look(adapter(AppSpec).validate_python(spec)) for spec in message["apps"]]
            version = find_interpreter(found[0].python).version
        except VelodromeError as error:
            self._say({"event": "entry", "reason": secrets.mask(str(error)), "exit_code": error.exit_code})
        else:
            plain = adapter(tuple[App, ...]).dump_python(tuple(found), mode="json")
            self._say({"event": "entry", "apps": plain, "version": version})

    def close(self) -> None:
        """End what is kept from one look to the next: nothing."""


if __name__ == "__main__":
    status = blocks.main(_Looking)
    sys.stdout.flush()
    sys.exit(status)
