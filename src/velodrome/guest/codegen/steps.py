"""The spelling of steps: each becomes lines of source and the names those lines use, compiled once at start.

`python -m velodrome.guest.codegen.steps` prints the nanoseconds that one turn of the loop of a `cpu` step takes here.
"""

from __future__ import annotations

import itertools
import linecache
import os
import sys
import threading
import time
from contextvars import ContextVar
from typing import Any, Callable, Dict, List, Sequence, Tuple

from velodrome.guest.recipe import (
    GRPC_VARIABLE,
    PLACES,
    Body,
    Call,
    Chat,
    Cpu,
    Keep,
    Query,
    ReadBody,
    Recipe,
    Sleep,
    Step,
    Stream,
    Together,
    Write,
    filler,
    kind_of,
)

if sys.version_info >= (3, 8):
    from typing import Protocol
else:  # 3.7 runs the servers of 2018; only type checkers read what a Protocol says
    Protocol = object

Lines = List[str]

CONTENT_TYPE = "text/html; charset=utf-8"
BAD_REQUEST, UPGRADE_REQUIRED, SERVER_ERROR, BAD_GATEWAY = 400, 426, 500, 502
HTTP_OK, GRPC_OK = 200, 0
REASONS = {BAD_REQUEST: "Bad Request", SERVER_ERROR: "Internal Server Error", BAD_GATEWAY: "Bad Gateway"}


class Idiom(Protocol):
    """How code waits: the word before a wait, and the functions that do the waiting."""

    wait: str
    """`""` in code that blocks, `"await "` in coroutines, `"yield "` or `"yield from "` in those of generators."""

    def sleep(self) -> Callable[[float], Any]:
        """Return what waits so many seconds."""

    def ask(self, upstream: str) -> Callable[[str], Any]:
        """Return what fetches a URL whole and gives its status, 0 if there was no answer."""

    def ask_all(self, ask: Callable[[Any], Any]) -> Callable[[Sequence[Any]], Any]:
        """Return what asks all at once what `ask` asks one by one, and gives the list of their statuses."""

    def ask_grpc(self, peer: str) -> Callable[[int], Any]:
        """Return what asks the server at `peer` (host:port) to answer after so many ms and gives its status."""

    def fetch(self, step: Query) -> Callable[[], Any]:
        """Return what reads the rows of a step and gives them, or fewer. ValueError if there is no client."""

    def store(self, step: Write) -> Callable[[], Any]:
        """Return what changes the rows of a step and gives how many, or 0. ValueError if there is no client."""

    def at_once(self, branches: Sequence[Callable[[], Any]]) -> Callable[[], Any]:
        """Return what calls all branches at once and gives the list of their results when all have ended."""


class HandlerCode:
    """The lines of a handler's steps and the names they use; the frame adds its own to both.

    `refuse(status)` gives the lines with which this frame answers a status with an empty body and ends;
    `read_body` are its lines which leave the request's whole body in `body`.
    """

    def __init__(
        self,
        recipe: Recipe,
        upstream: str,
        idiom: Idiom,
        refuse: Callable[[int], Lines],
        read_body: Sequence[str] = (),
    ) -> None:
        """Spell all steps but the last, which is the frame's. Raises ValueError for an unservable recipe."""
        problems = recipe.problems()
        if recipe.calls_upstream and not upstream:
            problems.append("it calls a third party, but no upstream address is given")
        peer = os.environ.get(GRPC_VARIABLE, "")
        if recipe.calls_grpc and not peer:
            problems.append("it calls a third party over gRPC, but %s names no address" % GRPC_VARIABLE)
        if problems:
            raise ValueError("recipe %r cannot be served: %s" % (recipe.name, "; ".join(problems)))
        self.recipe = recipe
        self.upstream, self.peer = upstream, peer
        self.idiom = idiom
        self.refuse = refuse
        self.read_body = list(read_body)
        self.names: Dict[str, Any] = {}
        self.lines: Lines = []
        for step in recipe.steps[:-1]:
            self.lines += self._spell(step)

    def _spell(self, step: Step) -> Lines:
        lines: Lines = getattr(self, "_" + kind_of(step))(step)
        return lines

    def _cpu(self, step: Cpu) -> Lines:
        return ["for _ in range(%d):" % calibrate(step.us), "    pass"]

    def _sleep(self, step: Sleep) -> Lines:
        self.names["sleep"] = self.idiom.sleep()
        return [self.waited("sleep(%r)" % (step.ms / 1000))]

    def _call(self, step: Call) -> Lines:
        ask, argument, right = self._asking(step)
        refusal = self._if_so(BAD_GATEWAY)
        if step.parallel and step.times > 1:
            self.names.setdefault(ask + "_all", self.idiom.ask_all(self.names[ask]))
            all_of_them = ", ".join([argument] * step.times)
            called = self.waited("%s_all((%s))" % (ask, all_of_them))
            return ["if %s != %r:" % (called, [right] * step.times), *refusal]
        once = ["if %s != %d:" % (self.waited("%s(%s)" % (ask, argument)), right), *refusal]
        if step.times == 1:
            return once
        return ["for _ in range(%d):" % step.times, *indent(once)]

    def _asking(self, step: Call) -> Tuple[str, str, int]:
        """Return the name of what asks the third party, what it is given, and the status of a right answer.

        One client, one pool of connections for all calls of a process.
        """
        if step.over == "grpc":
            if "ask_grpc" not in self.names:
                self.names["ask_grpc"] = self.idiom.ask_grpc(self.peer)
            return "ask_grpc", "%d" % step.latency_ms, GRPC_OK
        if "ask" not in self.names:
            self.names["ask"] = self.idiom.ask(self.upstream)
        return "ask", repr("%s/?velodrome-latency=%gms" % (self.upstream, step.latency_ms)), HTTP_OK

    def _query(self, step: Query) -> Lines:
        fetched = self.waited("%s()" % self._name_for("fetch", self.idiom.fetch(step)))
        return ["if len(%s) != %d:" % (fetched, step.rows), *self._if_so(SERVER_ERROR)]

    def _write(self, step: Write) -> Lines:
        stored = self.waited("%s()" % self._name_for("store", self.idiom.store(step)))
        return ["if %s != %d:" % (stored, step.rows), *self._if_so(SERVER_ERROR)]

    def _together(self, step: Together) -> Lines:
        """Each branch is a function that gives the status to refuse with, 0 if all is well."""
        branches = [self._branch(inner) for inner in step.steps]
        ended = self.waited("%s()" % self._name_for("at_once", self.idiom.at_once(branches)))
        lines = ["worst = max(%s)" % ended]
        for status in (BAD_GATEWAY, SERVER_ERROR):
            lines += ["if worst == %d:" % status, *self._if_so(status)]
        return lines

    def _branch(self, step: Step) -> Any:
        frame, self.refuse = self.refuse, lambda status: ["return %d" % status]
        try:
            lines = [*self._spell(step), "return 0"]
        finally:
            self.refuse = frame
        define = "async def" if self.idiom.wait == "await " else "def"
        name = self._name_for("branch", None)
        title = "%s %s" % (kind_of(step), self.recipe.name)
        return compile_lines(name, ["%s %s():" % (define, name), *indent(lines)], self.names, title)

    def _name_for(self, kind: str, thing: Any) -> str:
        """Return a name of its own for something the lines use."""
        name = "%s_%d" % (kind, len(self.names))
        self.names[name] = thing
        return name

    def _read_body(self, step: ReadBody) -> Lines:
        return [*self.read_body, "if len(body) != %d:" % self.recipe.upload_bytes, *self._if_so(BAD_REQUEST)]

    def _keep(self, step: Keep) -> Lines:
        put, get = place(step.place)
        kept = [
            "marker = bytes(body)",
            "%s(marker)" % self._name_for("put", put),
            *self._sleep(Sleep(step.ms)),
        ]
        return [*kept, "if %s() != marker:" % self._name_for("get", get), *self._if_so(SERVER_ERROR)]

    def _if_so(self, status: int) -> Lines:
        return indent(self.refuse(status))

    def waited(self, call: str) -> str:
        """Return the expression that makes a call and waits for its result, as the idiom waits."""
        return "(%s%s)" % (self.idiom.wait, call) if self.idiom.wait else call

    def over_time(self, emit: Sequence[str]) -> Lines:
        """Return lines that `emit` each chunk of the stream (it sends or yields `CHUNK`), spaced in time."""
        last = self.recipe.steps[-1]
        if not isinstance(last, Stream):
            raise TypeError("recipe %r does not end in a stream" % self.recipe.name)
        self.names["CHUNK"] = filler(last.chunk_bytes)
        pause = self._sleep(Sleep(last.every_ms)) if last.every_ms else []
        if last.chunks < 2:
            return list(emit) * last.chunks
        return [*emit, "for _ in range(%d):" % (last.chunks - 1), *indent([*pause, *emit])]

    def pieces(self) -> Lines:
        """Return a generator function `pieces` over the chunks, for frames that hand on an iterator."""
        define = "async def" if self.idiom.wait == "await " else "def"
        return ["%s pieces():" % define, *indent(self.over_time(["yield CHUNK"]))]

    @property
    def chats(self) -> bool:
        """Whether each message of a WebSocket is answered, instead of a request."""
        return isinstance(self.recipe.steps[-1], Chat)

    @property
    def to_room(self) -> bool:
        """Whether a message goes to all who are connected, not to its sender alone."""
        last = self.recipe.steps[-1]
        return isinstance(last, Chat) and last.room

    @property
    def streams(self) -> bool:
        """Whether the answer is a stream."""
        return isinstance(self.recipe.steps[-1], Stream)

    @property
    def size(self) -> int:
        """Length of the body of the answer, or with `on_wire` the length that head and body shall have together."""
        last = self.recipe.steps[-1]
        if not isinstance(last, Body):
            raise TypeError("recipe %r does not end in a body" % self.recipe.name)
        return last.size


def indent(lines: Sequence[str]) -> Lines:
    """Return the lines one level deeper."""
    return ["    " + line for line in lines]


_number = itertools.count(1)


def compile_lines(name: str, lines: Sequence[str], names: Dict[str, Any], title: str) -> Any:
    """Return what `lines` define as `name`; `names` become its globals.

    Tracebacks and profilers show the lines, under the file name `<velodrome title n>`.
    """
    source = "\n".join(lines) + "\n"
    filename = "<velodrome %s %d>" % (title, next(_number))
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    names["__name__"] = "velodrome.guest.handler"
    exec(compile(source, filename, "exec", dont_inherit=True), names)  # noqa: S102 - our own lines, see steps.py
    return names[name]


TURN_VARIABLE = "VELODROME_TURN_NS"
"""Environment variable that may carry the nanoseconds of one turn of the loop into a server process."""

ROUND = 10_000
"""Turns of one calibration run: a fraction of a millisecond, so that some runs meet no interrupt at all."""

ROUNDS = 200
"""The fastest of so many runs counts: noise (an interrupt, a cold cache, a busy sibling core) only adds."""


def _turn(count: int) -> float:
    """Return the seconds of this thread's CPU time that the loop of a handler takes for `count` turns."""
    started = time.thread_time()
    for _ in range(count):
        pass
    return time.thread_time() - started


def seconds_per_turn() -> float:
    """Return the CPU seconds of one turn of the loop on this interpreter and machine, now."""
    _turn(ROUND)  # lets an adaptive interpreter specialise the loop
    return min(_turn(ROUND) for _ in range(ROUNDS)) / ROUND


def calibrate(us: float) -> int:
    """Return how many turns of the loop keep the CPU busy for `us` microseconds."""
    if not us:
        return 0
    seconds = os.environ.get(TURN_VARIABLE)
    return round(us / 1e6 / (float(seconds) / 1e9 if seconds else seconds_per_turn()))


Place = Tuple[Callable[[bytes], object], Callable[[], bytes]]
"""How to put a marker in, and how to read it back."""


class Global:
    """One place for all: the marker of whoever came last."""


def place(name: str) -> Place:
    """Return a place by its name. Raises ValueError for a place that does not exist, or not in this process."""
    if name == "global":
        return _attribute_of(Global())
    if name == "thread-local":
        return _attribute_of(threading.local())
    if name == "context-local":
        variable: ContextVar[bytes] = ContextVar("marker", default=b"")
        return variable.set, variable.get
    if name not in PLACES:
        raise ValueError("no place is called %r; there are: %s" % (name, ", ".join(PLACES)))
    monkey = sys.modules.get("gevent.monkey")
    if monkey is None or not monkey.is_module_patched("threading"):
        raise ValueError("%s is a place where gevent has patched the standard library" % name)
    if name == "greenlet-local":
        from gevent.local import local

        return _attribute_of(local())
    # What a library has that took it before the patching, or that keeps its own in C.
    return _attribute_of(monkey.get_original("threading", "local")())


def _attribute_of(holder: Any) -> Place:
    def get() -> bytes:
        marker: bytes = getattr(holder, "marker", b"")
        return marker

    return (lambda marker: setattr(holder, "marker", marker)), get


if __name__ == "__main__":
    print("%.4g" % (seconds_per_turn() * 1e9))
