"""A recipe: what an endpoint does, as a list of steps, and what a right answer to it is.

    Recipe("third-party-200ms", "waits 200 ms on a third party", (Call(latency_ms=200), Body(84)))

Each step says what it needs, how it is written down, and what is wrong with it. Each interface (`guest/interfaces/`)
compiles the same recipe into a handler of its own idiom.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type, Union

EMBEDDED = "sqlite"
"""The database that is in the server process itself: no service has to run for it."""

GRPC_PEER = "grpc"
"""The service that is called over gRPC."""


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
    """Read the whole body of the request and refuse (status 400) a body that is not `Recipe.upload_bytes` long."""


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
        return max((wait_ms(inner) for inner in step.steps), default=0.0)
    if isinstance(step, (Sleep, Query, Keep)):
        return step.ms
    if isinstance(step, Call):
        return step.latency_ms * (1 if step.parallel else step.times)
    if isinstance(step, Stream):
        return step.every_ms * (step.chunks - 1)
    return 0.0


def step_problems(step: Step) -> List[str]:
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
        for number, inner in enumerate(step.steps):
            if isinstance(inner, AT_ONCE):
                found += [".steps[%d]%s" % (number, problem) for problem in step_problems(inner)]
            else:
                found.append(".steps[%d] (%s): its place is outside of together" % (number, kind_of(inner)))
    return found


def step_to_plain(step: Step) -> Dict[str, Any]:
    """Return the step as JSON-ready values: `{"do": kind, …}` with all its fields."""
    plain: Dict[str, Any] = {"do": kind_of(step)}
    for field in dataclasses.fields(step):
        value = getattr(step, field.name)
        plain[field.name] = [step_to_plain(inner) for inner in value] if isinstance(value, tuple) else value
    return plain


def step_from_plain(plain: Mapping[str, Any]) -> Step:
    """Read what `step_to_plain` made. Raises KeyError or TypeError on anything else."""
    fields = {
        key: tuple(map(step_from_plain, value)) if isinstance(value, list) else value
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


FILLER = b"<h1>Hello, World!</h1>"
"""22 bytes, repeated and cut to make every answer: any answer is a prefix of any longer answer."""

RECIPE_VARIABLE = "VELODROME_RECIPE"
"""Environment variable that carries the recipe, as JSON, into a server process."""

UPSTREAM_VARIABLE = "VELODROME_UPSTREAM"
"""Environment variable that carries the base URL of the simulated third party, without a final slash."""

GRPC_VARIABLE = "VELODROME_GRPC"
"""Environment variable that carries `host:port` of the third party that is called over gRPC."""


def filler(size: int) -> bytes:
    """Return the `size` bytes that an answer of that size consists of."""
    return (FILLER * (size // len(FILLER) + 1))[:size]


@dataclass(frozen=True)
class Recipe:
    """One endpoint. `about` completes the sentence «for an endpoint that …»."""

    name: str
    about: str
    steps: Tuple[Step, ...]
    method: str = "GET"
    upload_bytes: int = 0
    cookie_bytes: int = 0
    """Length of a cookie that each request carries, as a browser's do: servers that read a request in one go
    read a short cookie only."""

    @property
    def wait_ms(self) -> float:
        """Milliseconds a request waits at least, whatever serves it: sleeps, third party, pauses of a stream."""
        return sum(map(wait_ms, self.steps))

    @property
    def every_step(self) -> Tuple[Step, ...]:
        """All steps, with those inside `together` in its place."""
        found: List[Step] = []
        for step in self.steps:
            found += step.steps if isinstance(step, Together) else (step,)
        return tuple(found)

    @property
    def cpu_us(self) -> int:
        """Microseconds of CPU the recipe itself asks for."""
        return sum(step.us for step in self.every_step if isinstance(step, Cpu))

    @property
    def services(self) -> Tuple[str, ...]:
        """The real servers that have to run beside: databases, a gRPC peer; in the order of their first use."""
        names = [companion(step) for step in self.every_step]
        return tuple(dict.fromkeys(name for name in names if name))

    @property
    def calls_upstream(self) -> bool:
        """Whether the simulated third party (HTTP) has to be there."""
        return any(isinstance(step, Call) and step.over == "http" for step in self.every_step)

    @property
    def calls_grpc(self) -> bool:
        """Whether a third party that speaks gRPC has to be there."""
        return any(isinstance(step, Call) and step.over == "grpc" for step in self.every_step)

    @property
    def streams(self) -> bool:
        """Whether the answer comes in pieces."""
        return bool(self.steps) and isinstance(self.steps[-1], Stream)

    @property
    def reads_body(self) -> bool:
        """Whether it takes an upload."""
        return any(isinstance(step, ReadBody) for step in self.every_step)

    @property
    def chats(self) -> bool:
        """Whether it is called message by message, over a WebSocket or by gRPC's stream in both directions."""
        return bool(self.steps) and isinstance(self.steps[-1], Chat)

    @property
    def to_room(self) -> bool:
        """Whether a message goes to all who are connected."""
        return any(isinstance(step, Chat) and step.room for step in self.steps)

    @property
    def headers(self) -> Tuple[Tuple[str, str], ...]:
        """Names and values of header lines that each request carries beside those of its client."""
        return (("Cookie", "c=" + "x" * max(0, self.cookie_bytes - 2)),) if self.cookie_bytes else ()

    @property
    def upload(self) -> bytes:
        """The body of the request, empty for most recipes."""
        return filler(self.upload_bytes)

    def answer(self, head_bytes: Optional[int] = None) -> bytes:
        """Return the body of a right answer (its status is always 200).

        `head_bytes` is the length of the answer's head where the interface writes it itself, else None.
        """
        last = self.steps[-1]
        if isinstance(last, Chat):
            return b""  # what is sent comes back; there is no body
        if isinstance(last, Stream):
            return filler(last.chunk_bytes) * last.chunks
        if not isinstance(last, Body):
            raise ValueError("; ".join(self.problems()))
        if last.on_wire and head_bytes is not None:
            return filler(last.size - head_bytes)
        return filler(last.size)

    def problems(self) -> List[str]:
        """Return every reason why this recipe cannot be served; an empty list means it can."""
        found = []
        if not self.steps or not isinstance(self.steps[-1], ENDS):
            found.append("the last step must be body, stream or chat")
        if any(isinstance(step, ENDS) for step in self.steps[:-1]):
            found.append("body, stream and chat end a recipe; nothing may follow them")
        if self.upload_bytes and not self.reads_body:
            found.append("upload_bytes is set but no read_body step reads it")
        kinds = [type(step) for step in self.steps]
        if Keep in kinds and not (self.upload_bytes and ReadBody in kinds[: kinds.index(Keep)]):
            found.append("keep has no upload to keep; give upload_bytes, and read_body before it")
        if self.reads_body and self.method not in ("POST", "PUT", "PATCH"):
            found.append("read_body needs method POST, PUT or PATCH, not %s" % self.method)
        for number, step in enumerate(self.steps):
            found += ["steps[%d]%s" % (number, problem) for problem in step_problems(step)]
        return found

    def to_json(self) -> str:
        """Return the recipe as one line of JSON."""
        return json.dumps(to_plain(self), separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Recipe:
        """Read what `to_json` wrote."""
        return from_plain(json.loads(text))


def to_plain(recipe: Recipe) -> Dict[str, Any]:
    """Return the recipe as JSON-ready values; a step is `{"do": kind, …}` with all its fields."""
    plain: Dict[str, Any] = {"name": recipe.name, "about": recipe.about}
    plain["steps"] = [step_to_plain(step) for step in recipe.steps]
    plain["method"] = recipe.method
    plain["upload_bytes"] = recipe.upload_bytes
    if recipe.cookie_bytes:
        plain["cookie_bytes"] = recipe.cookie_bytes
    return plain


def from_plain(plain: Mapping[str, Any]) -> Recipe:
    """Read what `to_plain` made. Raises KeyError or TypeError on anything else."""
    steps = tuple(map(step_from_plain, plain["steps"]))
    return Recipe(
        plain["name"],
        plain["about"],
        steps,
        plain.get("method", "GET"),
        plain.get("upload_bytes", 0),
        plain.get("cookie_bytes", 0),
    )


def served_here() -> Tuple[Recipe, str]:
    """Return the recipe this server process serves and the base URL of its third party (may be empty)."""
    return Recipe.from_json(os.environ[RECIPE_VARIABLE]), os.environ.get(UPSTREAM_VARIABLE, "")
