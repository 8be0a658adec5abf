"""A recipe: what an endpoint does, told as steps, and what a right answer to it is.

    Recipe("third-party-200ms", "waits 200 ms on a third party", (Call(latency_ms=200), Body(84)))

The steps are those of `guest/step.py`, and can be had from here too. Each interface (`guest/interfaces/`) compiles
the same recipe into a handler of its own idiom.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Tuple

from velodrome.guest import step as steps_of
from velodrome.guest.step import (
    AT_ONCE,
    EMBEDDED,
    ENDS,
    GRPC_PEER,
    PLACES,
    STEPS,
    Body,
    Call,
    Chat,
    Cpu,
    Keep,
    Query,
    ReadBody,
    Sleep,
    Step,
    Stream,
    Together,
    Write,
    kind_of,
    wait_ms,
)

__all__ = (
    "AT_ONCE",
    "EMBEDDED",
    "ENDS",
    "GRPC_PEER",
    "PLACES",
    "STEPS",
    "Body",
    "Call",
    "Chat",
    "Cpu",
    "Keep",
    "Query",
    "ReadBody",
    "Recipe",
    "Sleep",
    "Step",
    "Stream",
    "Together",
    "Write",
    "filler",
    "from_plain",
    "kind_of",
    "served_here",
    "to_plain",
    "wait_ms",
)

FILLER = b"<h1>Hello, World!</h1>"
"""22 bytes, repeated and cut to make every answer: any answer is a prefix of any longer one."""

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
    read a short one only."""

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
    def companions(self) -> Tuple[str, ...]:
        """The real servers that have to run beside: databases, a gRPC peer; in the order they are first asked."""
        asked = [steps_of.companion(step) for step in self.every_step]
        return tuple(dict.fromkeys(name for name in asked if name))

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
        """Whether it is asked message by message, over a WebSocket or by gRPC's stream in both directions."""
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
            found += ["steps[%d]%s" % (number, problem) for problem in steps_of.problems(step)]
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
    plain["steps"] = [steps_of.to_plain(step) for step in recipe.steps]
    plain["method"] = recipe.method
    plain["upload_bytes"] = recipe.upload_bytes
    if recipe.cookie_bytes:
        plain["cookie_bytes"] = recipe.cookie_bytes
    return plain


def from_plain(plain: Mapping[str, Any]) -> Recipe:
    """Read what `to_plain` made. Raises KeyError or TypeError on anything else."""
    steps = tuple(map(steps_of.from_plain, plain["steps"]))
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
