"""A recipe: what an endpoint does, told as steps, and what a right answer to it is.

    Recipe("third-party-200ms", "waits 200 ms on a third party", (Call(latency_ms=200), Body(84)))

Each interface (`guest/interfaces/`) compiles the same recipe into a handler of its own idiom.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type, Union

FILLER = b"<h1>Hello, World!</h1>"
"""22 bytes, repeated and cut to make every answer: any answer is a prefix of any longer one."""

RECIPE_VARIABLE = "VELODROME_RECIPE"
"""Environment variable that carries the recipe, as JSON, into a server process."""

UPSTREAM_VARIABLE = "VELODROME_UPSTREAM"
"""Environment variable that carries the base URL of the simulated third party, without a final slash."""


def filler(size: int) -> bytes:
    """Return the `size` bytes that an answer of that size consists of."""
    return (FILLER * (size // len(FILLER) + 1))[:size]


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
    """Ask the third party `times` times, one after the other or all at once; each answer takes `latency_ms`."""

    latency_ms: float
    times: int = 1
    parallel: bool = False


@dataclass(frozen=True)
class Query:
    """Read `rows` rows by primary key from the database, in one statement."""

    rows: int = 1
    database: str = "sqlite"


@dataclass(frozen=True)
class ReadBody:
    """Read the whole body of the request and refuse (status 400) one that is not `Recipe.upload_bytes` long."""


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

    The steps before it are done for each message. A room is the connections of one process.
    """

    room: bool = False


Step = Union[Cpu, Sleep, Call, Query, ReadBody, Body, Stream, Chat]
STEPS: Dict[str, Type[Any]] = {
    "cpu": Cpu,
    "sleep": Sleep,
    "call": Call,
    "query": Query,
    "read_body": ReadBody,
    "body": Body,
    "stream": Stream,
    "chat": Chat,
}
ENDS = (Body, Stream, Chat)
_KINDS = {cls: kind for kind, cls in STEPS.items()}


def kind_of(step: Step) -> str:
    """Return the name of a step as study files write it, e.g. `read_body`."""
    return _KINDS[type(step)]


@dataclass(frozen=True)
class Recipe:
    """One endpoint. `about` completes the sentence «for an endpoint that …»."""

    name: str
    about: str
    steps: Tuple[Step, ...]
    method: str = "GET"
    upload_bytes: int = 0

    @property
    def wait_ms(self) -> float:
        """Milliseconds a request waits at least, whatever serves it: sleeps, third party, pauses of a stream."""
        total = 0.0
        for step in self.steps:
            if isinstance(step, Sleep):
                total += step.ms
            elif isinstance(step, Call):
                total += step.latency_ms * (1 if step.parallel else step.times)
            elif isinstance(step, Stream):
                total += step.every_ms * (step.chunks - 1)
        return total

    @property
    def cpu_us(self) -> int:
        """Microseconds of CPU the recipe itself asks for."""
        return sum(step.us for step in self.steps if isinstance(step, Cpu))

    @property
    def calls_upstream(self) -> bool:
        """Whether a third party has to be there."""
        return any(isinstance(step, Call) for step in self.steps)

    @property
    def chats(self) -> bool:
        """Whether it is asked over a WebSocket, message by message."""
        return bool(self.steps) and isinstance(self.steps[-1], Chat)

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
        reads = any(isinstance(step, ReadBody) for step in self.steps)
        if self.upload_bytes and not reads:
            found.append("upload_bytes is set but no read_body step reads it")
        if reads and self.method not in ("POST", "PUT", "PATCH"):
            found.append("read_body needs method POST, PUT or PATCH, not %s" % self.method)
        for number, step in enumerate(self.steps):
            for field in dataclasses.fields(step):
                value = getattr(step, field.name)
                if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0:
                    found.append(
                        "steps[%d] (%s): %s is %s; it cannot be negative"
                        % (number, kind_of(step), field.name, value)
                    )
        return found

    def to_json(self) -> str:
        """Return the recipe as one line of JSON."""
        return json.dumps(to_plain(self), separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Recipe:
        """Read what `to_json` wrote."""
        return from_plain(json.loads(text))


def to_plain(recipe: Recipe) -> Dict[str, Any]:
    """Return the recipe as JSON-ready values; a step is `{"do": kind, …}`, defaults left out."""
    plain: Dict[str, Any] = {"name": recipe.name, "about": recipe.about}
    plain["steps"] = [
        {"do": kind_of(step), **{f.name: getattr(step, f.name) for f in dataclasses.fields(step)}}
        for step in recipe.steps
    ]
    plain["method"] = recipe.method
    plain["upload_bytes"] = recipe.upload_bytes
    return plain


def from_plain(plain: Mapping[str, Any]) -> Recipe:
    """Read what `to_plain` made. Raises KeyError or TypeError on anything else."""
    steps = tuple(
        STEPS[step["do"]](**{k: v for k, v in step.items() if k != "do"}) for step in plain["steps"]
    )
    return Recipe(
        plain["name"], plain["about"], steps, plain.get("method", "GET"), plain.get("upload_bytes", 0)
    )


def served_here() -> Tuple[Recipe, str]:
    """Return the recipe this server process serves and the base URL of its third party (may be empty)."""
    return Recipe.from_json(os.environ[RECIPE_VARIABLE]), os.environ.get(UPSTREAM_VARIABLE, "")
