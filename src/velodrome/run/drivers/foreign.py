"""Run another program to its end on the CPUs for load, and have all it left: every foreign driver starts here.

    finished = spawn(("/usr/bin/wrk", "-d2s", url), cpus=(1,), span_s=2, on_event=sampler.on)
    finished.status, finished.output, finished.cpu_s

It ends with velodrome, however that ends, and with the deadline. It is in the network of the thread that calls
(`run/link.py`).
"""

import json
import select
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from velodrome.model.errors import DriverError, DriverStoppedError, DriverTimedOutError, StartRefusedError
from velodrome.run.drivers.driver import LoadEvent, OnEvent
from velodrome.run.drivers.foreign_process import ERRORS, OUTPUT, SIZE_DIGITS
from velodrome.run.supervision import python, scratch
from velodrome.run.supervision.python import LAST_LINES, Child

MODULE = "velodrome.run.drivers.foreign_process"
ASKED_EVERY_S = 0.25
"""How often it is asked whether the load should go on, as a foreign program tells nothing while it runs."""

SLACK_S = 15.0
"""Beyond the time it should take: start-up on a busy machine, requests in flight at the end, writing a report."""


@dataclass(frozen=True)
class Finished:
    """A program that ran to its end."""

    argv: tuple[str, ...]
    status: int
    """As in `subprocess`: negative is the number of the signal that killed it."""
    output: str
    errors: str
    files: Mapping[str, bytes]
    """What else it left in its folder."""
    cpu_user_s: float
    cpu_sys_s: float
    wall_s: float

    @property
    def cpu_s(self) -> float:
        """All its CPU time, seconds."""
        return self.cpu_user_s + self.cpu_sys_s

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The end of its standard error or, without any, of its output."""
        said = self.errors.strip() or self.output.strip()
        return tuple(line.rstrip() for line in said.splitlines()[-LAST_LINES:])


def spawn(
    argv: Sequence[str],
    cpus: Sequence[int] = (),
    *,
    span_s: float,
    slack_s: float = SLACK_S,
    files: Mapping[str, bytes] | None = None,
    on_event: OnEvent = lambda _: True,
    measured: bool = True,
    hangs: str = "",
) -> Finished:
    """Run a program, which should take `span_s`, in a folder that holds `files`; `argv[0]` is an absolute path.

    Tells `on_event` of `started` and, if `measured`, of its start and end as the measured span, and asks in
    between whether to go on (`alive`). Raises DriverTimedOutError `slack_s` after its time (`hangs` says why that
    may be), DriverStoppedError when `on_event` ended it, StartRefusedError, and DriverError when what holds it
    was killed.
    """
    sent = files or {}
    with (
        scratch.held("driver") as folder,
        python.start_own(MODULE, cpus=cpus) as child,
    ):
        talk = _Talk(child, Path(argv[0]).name, (span_s, slack_s), on_event, hangs)
        # Numbers as the parsers read them, wherever the user lives.
        order = {
            "argv": list(argv),
            "folder": str(folder),
            "env": {"LC_ALL": "C"},
            "files": [[name, len(data)] for name, data in sent.items()],
        }
        text = json.dumps(order).encode()
        child.send(f"{len(text):0{SIZE_DIGITS}}".encode() + text + b"".join(sent.values()))
        talk.tell("started", pid=talk.hear("started")["pid"])
        if measured:
            talk.tell("measuring", monotonic_ns=time.monotonic_ns())
        child.send(b"go\n")
        exited = talk.hear("exited")
        if measured:
            on_event(LoadEvent("span_ended", {"monotonic_ns": exited["monotonic_ns"]}))
        child.send(b"reap\n")
        ended = talk.hear("ended")
        left = {name: talk.take(size) for name, size in ended["files"]}
    return Finished(
        argv=tuple(argv),
        status=ended["status"],
        output=left.pop(OUTPUT, b"").decode(errors="replace"),
        errors=left.pop(ERRORS, b"").decode(errors="replace"),
        files={name: data for name, data in left.items() if name not in sent},
        cpu_user_s=ended["cpu_user_s"],
        cpu_sys_s=ended["cpu_sys_s"],
        wall_s=exited["wall_s"],
    )


class _Talk:
    """What the holding process says, read with a deadline."""

    def __init__(
        self, child: Child, name: str, deadlines: tuple[float, float], on_event: OnEvent, hangs: str
    ) -> None:
        self.child, self.name, self.on_event, self.hangs = child, name, on_event, hangs
        span_s, self.slack_s = deadlines
        self.until = time.monotonic() + span_s + self.slack_s
        self.rest = bytearray()

    def tell(self, kind: str, **facts: object) -> None:
        """Pass an event on. Raises DriverStoppedError when the load is to end."""
        if not self.on_event(LoadEvent(kind, facts)):
            raise DriverStoppedError(self.name)

    def hear(self, kind: str) -> Mapping[str, Any]:
        """Return the next event, which must be of this kind."""
        while b"\n" not in self.rest:
            self._read()
        line = self.take(self.rest.index(b"\n") + 1)
        event: dict[str, Any] = json.loads(line)
        if event["event"] == "refused":
            raise StartRefusedError(event["stage"], event["what"], event["errno"])
        assert event["event"] == kind, event
        return event

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        while len(self.rest) < size:
            self._read()
        taken = bytes(self.rest[:size])
        del self.rest[:size]
        return taken

    def _read(self) -> None:
        until = min(self.until, time.monotonic() + ASKED_EVERY_S)
        if select.select([self.child.output], [], [], max(0.0, until - time.monotonic()))[0]:
            data = self.child.output.read(1 << 20)
            if not data:
                raise DriverError(self.name, self.child.end(), self.child.last_lines())
            self.rest += data
        elif time.monotonic() >= self.until:
            raise DriverTimedOutError(self.name, self.slack_s, self.child.last_lines(), self.hangs)
        else:
            self.tell("alive")
