"""The steps a recipe is told in: what each asks for, how it is written down, and what is wrong with it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Tuple, Type, Union

EMBEDDED = "sqlite"
"""The database that is in the server process itself: no companion has to run for it."""

GRPC_PEER = "grpc"
"""The companion that is called over gRPC."""


@dataclass(frozen=True)
class Cpu:
    """Keep the CPU busy for `us` microseconds of its own time, in pure Python (the GIL is held)."""

    us: int


@dataclass(frozen=True)
class Sleep:
    """Wait `ms` milliseconds without using the CPU."""

    ms: float


@dataclass(frozen=True)
class Call:
    """Ask the third party `times` times, one after the other or all at once; each answer takes `latency_ms`.

    `over` is `http` (the simulated third party) or `grpc` (a real gRPC server); the latter counts whole
    milliseconds, as its request does.
    """

    latency_ms: float
    times: int = 1
    parallel: bool = False
    over: str = "http"


@dataclass(frozen=True)
class Query:
    """Read `rows` rows by primary key from the database, in one statement that takes `ms` more there.

    `driver` names the client (`guest/clients/`); empty is the one that suits the handler's idiom.
    """

    rows: int = 1
    database: str = EMBEDDED
    driver: str = ""
    ms: float = 0.0


@dataclass(frozen=True)
class Write:
    """Change `rows` rows by primary key in the database, in one statement, and commit it."""

    rows: int = 1
    database: str = EMBEDDED
    driver: str = ""


@dataclass(frozen=True)
class Together:
    """Do all of `steps` at once, and go on when the last of them is done."""

    steps: Tuple[Step, ...]


@dataclass(frozen=True)
class ReadBody:
    """Read the whole body of the request and refuse (status 400) one that is not `Recipe.upload_bytes` long."""


PLACES = ("global", "thread-local", "context-local", "greenlet-local", "thread-local-unpatched")
"""Where a marker of a request may be kept. The last two are there once gevent has patched the standard library."""


@dataclass(frozen=True)
class Keep:
    """Keep the upload, as a marker of this request, in a place for `ms` milliseconds; status 500 if it is lost.

    It is lost where another request's is found afterwards. `place` is one of `PLACES`.
    """

    place: str = "thread-local"
    ms: float = 10.0


@dataclass(frozen=True)
class Body:
    """Answer `size` bytes of filler with a Content-Length.

    With `on_wire`, an interface that writes the head of the answer itself makes head and body
    `size` bytes together; where the server writes the head, the body alone is `size` bytes.
    """

    size: int
    on_wire: bool = False


@dataclass(frozen=True)
class Stream:
    """Answer `chunks` pieces of `chunk_bytes` bytes, `every_ms` apart, the first at once."""

    chunks: int
    chunk_bytes: int
    every_ms: float


@dataclass(frozen=True)
class Chat:
    """Keep a WebSocket open and send each message back: to its sender, or with `room` to all who are connected.

    The steps before it are done for each message. A room is the connections of one process. Over gRPC a call
    with a stream in each direction is kept open instead; that has no rooms.
    """

    room: bool = False


Step = Union[Cpu, Sleep, Call, Query, Write, Together, ReadBody, Keep, Body, Stream, Chat]
STEPS: Dict[str, Type[Any]] = {
    "cpu": Cpu,
    "sleep": Sleep,
    "call": Call,
    "query": Query,
    "write": Write,
    "together": Together,
    "read_body": ReadBody,
    "keep": Keep,
    "body": Body,
    "stream": Stream,
    "chat": Chat,
}
ENDS = (Body, Stream, Chat)
AT_ONCE = (Cpu, Sleep, Call, Query, Write)
"""The steps that `together` may hold: what answers, or reads the request, has its place in the order."""
_KINDS = {cls: kind for kind, cls in STEPS.items()}


def kind_of(step: Step) -> str:
    """Return the name of a step as study files write it, e.g. `read_body`."""
    return _KINDS[type(step)]


def companion(step: Step) -> str:
    """Return the name of the real server that a step asks; empty for none."""
    if isinstance(step, (Query, Write)):
        return "" if step.database == EMBEDDED else step.database
    return GRPC_PEER if isinstance(step, Call) and step.over == "grpc" else ""


def wait_ms(step: Step) -> float:
    """Return the milliseconds that a step waits at least: asleep, for a third party, between pieces."""
    if isinstance(step, Together):
        return max((wait_ms(one) for one in step.steps), default=0.0)
    if isinstance(step, (Sleep, Query, Keep)):
        return step.ms
    if isinstance(step, Call):
        return step.latency_ms * (1 if step.parallel else step.times)
    if isinstance(step, Stream):
        return step.every_ms * (step.chunks - 1)
    return 0.0


def problems(step: Step) -> List[str]:
    """Return what is wrong with one step, each as it goes on behind its place: ` (sleep): ms is …`."""
    found = []
    for field in dataclasses.fields(step):
        value = getattr(step, field.name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0:
            found.append(" (%s): %s is %s; it cannot be negative" % (kind_of(step), field.name, value))
    if isinstance(step, Call):
        found += [" (call): " + problem for problem in _of_call(step)]
    if isinstance(step, Together):
        if not step.steps:
            found.append(" (together): it has no steps to do at once; give some, or leave it out")
        for number, one in enumerate(step.steps):
            if isinstance(one, AT_ONCE):
                found += [".steps[%d]%s" % (number, problem) for problem in problems(one)]
            else:
                found.append(".steps[%d] (%s): its place is outside of together" % (number, kind_of(one)))
    return found


def to_plain(step: Step) -> Dict[str, Any]:
    """Return the step as JSON-ready values: `{"do": kind, …}` with all its fields."""
    plain: Dict[str, Any] = {"do": kind_of(step)}
    for field in dataclasses.fields(step):
        value = getattr(step, field.name)
        plain[field.name] = [to_plain(one) for one in value] if isinstance(value, tuple) else value
    return plain


def from_plain(plain: Mapping[str, Any]) -> Step:
    """Read what `to_plain` made. Raises KeyError or TypeError on anything else."""
    fields = {
        key: tuple(map(from_plain, value)) if isinstance(value, list) else value
        for key, value in plain.items()
        if key != "do"
    }
    step: Step = STEPS[plain["do"]](**fields)
    return step


def _of_call(step: Call) -> List[str]:
    if step.over not in ("http", "grpc"):
        return ["over is %r; a third party is called over http or grpc" % step.over]
    if step.over == "grpc" and step.latency_ms != int(step.latency_ms):
        return ["latency_ms is %g; over grpc it is a whole number of milliseconds" % step.latency_ms]
    return []
