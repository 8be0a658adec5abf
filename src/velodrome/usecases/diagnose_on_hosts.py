"""Examinations on the hosts of agents: each app is examined whole, on one host.

    for number, examined in diagnose_over([spec, spec], "tls://track:8786", None, follower): ...

Every host that is free takes the next one, so that a ward of apps takes 1/N of the time on N hosts. What a lost host
had begun begins anew on another. `python -m velodrome.usecases.diagnose_on_hosts` is the process on a host: the app,
its folder and its interpreter are that host's, and so are the figures.
"""

import base64
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from velodrome.model import secrets
from velodrome.model.diagnosis import Examination
from velodrome.model.errors import ExaminationRefusedError, ExaminersGoneError
from velodrome.model.results import adapter
from velodrome.run.cluster import blocks, sending
from velodrome.run.cluster.apart import Channel
from velodrome.run.supervision.undisturbed import stoppable
from velodrome.usecases.apps import may_hold_secrets, named_absolutely
from velodrome.usecases.diagnose import DoctorSpec, Sentences, choose_faults, diagnose
from velodrome.usecases.events import Events

GIVEN = "examinations"
"""What a host is given (`holding.RACES`)."""

# --- The command.


def diagnose_there(spec: DoctorSpec, follower: Events) -> Examination:
    """Examine one app on the first host that is free.

    Raises what `diagnose_over` does, and ExaminationRefusedError for what is wrong with the app there.
    """
    for _, found in diagnose_over([spec], spec.agents, spec.keys, follower):
        if isinstance(found, Examination):
            return found
        raise found
    raise AssertionError("an examination ends, or raises")


def diagnose_over(
    specs: Sequence[DoctorSpec], agents: str, keys: Path | None, follower: Events
) -> Iterator[tuple[int, Examination | ExaminationRefusedError]]:
    """Yield the number of a specification, and what its examination came to, as the hosts get done with them.

    Raises UnknownNameError, AppVariableError, InterpreterNotFoundError, SendingError, what `race.reach_hosts` and
    `Hosts.begin_other` of `run/cluster/handing.py` do, and ExaminersGoneError where no host is left.
    """
    from velodrome.run.cluster import handing  # noqa: PLC0415 - brings Dask
    from velodrome.usecases import race  # noqa: PLC0415 - would import in a circle

    for spec in specs:
        choose_faults(spec.only, spec.skip)
    there = [_as_seen_there(spec) for spec in specs]
    upcoming = iter(range(len(specs)))
    sent = {(app.cwd, app.user) for spec in there if spec.send and (app := spec.served.app) is not None}
    assert len(sent) < 2, "what is sent is the folder of one app"
    needs = {"cwd": "".join(cwd for cwd, _ in sent), "user": "".join(user for _, user in sent)}
    files = "".join(base64.b64encode(sending.pack(cwd)).decode() for cwd, _ in sent)
    done = set[int]()
    with (
        stoppable(),
        race.reach_hosts(handing.hosts, agents, keys, user="", cwd="", allow_sdist=False) as hosts,
    ):
        secret = bool(sent) or any(may_hold_secrets(spec.served.app) for spec in there if spec.served.app)
        hosts.begin_other(GIVEN, needs, secret=secret, follower=follower, files=files)
        pieces = hosts.others(lambda: next(upcoming, None), lambda number: _line(there[number]), follower)
        for number, found in pieces:
            if number in done:  # by a host that was lost between the result and its last word
                continue
            done.add(number)
            if isinstance(found, ExaminationRefusedError):
                yield number, found
            else:
                yield number, adapter(Examination).validate_python(found["examination"])
        if len(done) < len(specs):
            raise ExaminersGoneError(len(done), len(specs), hosts.gone)


def _as_seen_there(spec: DoctorSpec) -> DoctorSpec:
    """Return what a host is to examine: paths are absolute, and variables have the values that they have here."""
    stack = os.path.abspath(spec.stack) if spec.stack.endswith(".py") else spec.stack
    app = named_absolutely(spec.served.app) if spec.served.app is not None else None
    return replace(spec, served=replace(spec.served, app=app), stack=stack, agents="", keys=None, wait=True)


def _line(spec: DoctorSpec) -> str:
    return json.dumps(adapter(DoctorSpec).dump_python(spec, mode="json"))


# --- The process on a host.


class _Examiner(blocks.Answering):
    """Examines what it is given on this host, one app after the other."""

    def __init__(
        self, message: Mapping[str, Any], say: Callable[[dict[str, Any]], None], channel: Channel
    ) -> None:
        super().__init__(message, say, channel)
        self._folder = sending.receive(message["files"]) if message["files"] else ""
        """Where what was sent is; removed with this process."""

    def answer(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """Examine an app."""
        spec = adapter(DoctorSpec).validate_python(message)
        found = diagnose(self._here(spec), Sentences(self._follow))
        return {"examination": adapter(Examination).dump_python(secrets.mask_noun(found), mode="json")}

    def _here(self, spec: DoctorSpec) -> DoctorSpec:
        """Return a specification with the paths of what was sent."""
        app = spec.served.app
        if app is None or not spec.send:
            return replace(spec, send=False)
        app = replace(app, cwd=self._folder, proto=sending.inside(app.proto, app.cwd, self._folder))
        return replace(spec, served=replace(spec.served, app=app), send=False)

    def _follow(self, sentence: str) -> None:
        self._say({"event": "preparing", "text": secrets.mask(sentence)})


if __name__ == "__main__":
    status = blocks.main(_Examiner)
    sys.stdout.flush()
    sys.exit(status)
