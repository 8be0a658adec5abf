"""The simulated third party that recipes and apps call: what it answers, and its process, pinned to CPUs of its own.

with start(cpus=(1,), latency="200ms") as upstream:
    ... VELODROME_UPSTREAM=upstream.url ...
    upstream.begin(); ...; facts = upstream.end()

`serve_here` serves it in this process: for the command `upstream`, and to see whether it can be had.
"""

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from velodrome import _native
from velodrome.model.app import Stall, ThirdParty
from velodrome.model.errors import EngineError, UpstreamError, UsageError
from velodrome.model.measurement import UpstreamFacts
from velodrome.run.supervision import python

MODULE = "velodrome.run.upstream_process"
PATIENCE_S = 10.0
"""To start or to report its facts; both take milliseconds on an idle machine."""


def answering(third: ThirdParty) -> dict[str, Any]:
    """Return the fields of a specification that say what its answers are and when they come."""
    body: int | dict[str, str] = third.size
    if third.body is not None:
        body = {"base64": third.body.base64} if third.body.base64 else {"text": third.body.text}
    return {
        "latency": third.latency,
        "errors": third.errors,
        "stall": None if third.stall is None else asdict(third.stall),
        "body": body,
        "type": third.content_type,
    }


_SPAN = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(\s*)(us|ms|s|m|h)\b")
"""A number with a unit of time."""


def slower(latency: str, times: float, folder: Path) -> str:
    """Return a latency that is so many times as long; a file of latencies is written anew in `folder`.

    A distribution keeps its shape, as its relative spread (`sigma`) has no unit. Raises UpstreamError for a file that
    cannot be read or written.
    """
    text = latency.strip()
    if text.endswith(")") or text[:1].isdecimal() or text[:1] in {".", "+"}:
        return _times(text, times)
    file = Path(text)
    made = folder / f"latencies-{zlib.crc32(text.encode()):08x}"
    try:
        lines = [line.split("#")[0].strip() for line in file.read_text().splitlines()]
        # A number without a unit is milliseconds.
        longer = [_times(f"{line}ms" if line[-1].isdecimal() else line, times) for line in lines if line]
        made.write_text("\n".join(longer) + "\n")
        made.chmod(0o644)  # who serves as the third party may be another user
    except (OSError, ValueError) as error:
        raise UpstreamError(f"its latencies in {file} cannot be made longer: {error}") from error
    return str(made)


def _times(text: str, times: float) -> str:
    return _SPAN.sub(lambda span: f"{float(span[1]) * times:.9g}{span[2]}{span[3]}", text)


class Answering(Protocol):
    """A running third party, wherever it is; leaving the `with` block stops it."""

    @property
    def pid(self) -> int | None:
        """Process id, for whoever accounts for its CPU; None: it is on another machine."""

    @property
    def url(self) -> str:
        """Base URL, without a final slash."""

    def begin(self) -> None:
        """The measured span begins. Raises UpstreamError."""

    def end(self) -> UpstreamFacts:
        """The measured span is over: return what happened since `begin`. Raises UpstreamError."""

    def so_far(self) -> int:
        """Return how many requests it got since it was started. Raises UpstreamError."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class ThirdPartyOf(Protocol):
    """Starts a third party that answers as it says."""

    def __call__(self, third: ThirdParty, *, cpus: Sequence[int] = (), seed: int = 1) -> Answering:
        """Raise UpstreamError where there can be none."""


class Upstream:
    """A running third party of this machine; leaving the `with` block stops it."""

    def __init__(self, child: python.Child, host: str) -> None:
        self._child, self._host = child, host
        self.port = int(self._answer()["port"])

    @property
    def pid(self) -> int:
        """Process id, for whoever accounts for its CPU."""
        return self._child.pid

    @property
    def url(self) -> str:
        """Base URL, without a final slash."""
        return f"http://{self._host}:{self.port}"

    def begin(self) -> None:
        """The measured span begins. Raises UpstreamError when the process is gone."""
        self.read_facts()

    def end(self) -> UpstreamFacts:
        """The measured span is over: return what happened since `begin`. Raises UpstreamError."""
        return facts_of(self.read_facts())

    def so_far(self) -> int:
        """Return how many requests it got since it was started. Raises UpstreamError."""
        return int(self.read_facts()["requests"])

    def read_facts(self) -> Mapping[str, Any]:
        """Return the facts so far; under `since` those since the last time they were asked for."""
        try:
            self._child.input.write(b"facts\n")
        except (BrokenPipeError, ValueError) as error:
            reason = f"its process has ended ({self._child.ending()})"
            raise UpstreamError(reason, self._child.last_lines()) from error
        return self._answer()

    def _answer(self) -> Mapping[str, Any]:
        """Read one line of JSON. Raises UpstreamError when none comes in time."""
        try:
            answer: Mapping[str, Any] = json.loads(self._child.answer(PATIENCE_S))
        except TimeoutError as error:
            raise UpstreamError(str(error)) from error
        except EOFError as error:
            raise UpstreamError(str(error), self._child.last_lines()) from error
        if "error" in answer:
            raise UpstreamError(answer["error"])
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End it; may be called again."""
        self._child.__exit__(None, None, None)


def facts_of(message: Mapping[str, Any]) -> UpstreamFacts:
    """Return what happened since it was asked last, of what its process says."""
    since = message["since"]
    return UpstreamFacts(
        requests=since["requests"],
        cpu_s=since["cpu_s"],
        late_p50_ms=since["late_ms"]["p50"],
        late_p99_ms=since["late_ms"]["p99"],
    )


def begin(several: Sequence[Answering]) -> None:
    """The measured span begins, for all of them. Raises UpstreamError."""
    for upstream in several:
        upstream.begin()


def end(several: Sequence[Answering]) -> UpstreamFacts | None:
    """The measured span is over: return what happened in all of them together; None where there is none.

    How late they were is reported of the latest of them: percentiles cannot be added. Raises UpstreamError.
    """
    every = [upstream.end() for upstream in several]
    if not every:
        return None
    return UpstreamFacts(
        requests=sum(facts.requests for facts in every),
        cpu_s=sum(facts.cpu_s for facts in every),
        late_p50_ms=max(
            (facts.late_p50_ms for facts in every if facts.late_p50_ms is not None), default=None
        ),
        late_p99_ms=max(
            (facts.late_p99_ms for facts in every if facts.late_p99_ms is not None), default=None
        ),
        agent=every[0].agent,
        host=every[0].host,
        round_trip_ms=every[0].round_trip_ms,
    )


def start(
    *,
    cpus: Sequence[int] = (),
    latency: str = "0ms",
    errors: float = 0.0,
    stall: Mapping[str, float] | None = None,
    body: int = 64,
    seed: int = 1,
    host: str = "127.0.0.1",
) -> Upstream:
    """Start a third party on a fresh port and return it once it listens. Raises UpstreamError.

    `latency` is a duration, a distribution or the path of a file of latencies, as `velodrome upstream` takes
    it; a request may override it (`?velodrome-latency=75ms`).
    """
    stalls = Stall(stall["for_s"], stall["every_s"]) if stall is not None else None
    return start_as(ThirdParty("", latency, errors, stalls, size=body), cpus=cpus, seed=seed, host=host)


def start_as(
    third: ThirdParty, *, cpus: Sequence[int] = (), seed: int = 1, host: str = "127.0.0.1"
) -> Upstream:
    """Start a third party that answers as `third` says. Raises UpstreamError."""
    spec = {"host": host, "port": 0, **answering(third), "threads": 1, "seed": seed}
    child = python.start_own(MODULE, cpus=cpus)
    try:
        child.input.write(json.dumps(spec).encode() + b"\n")
        return Upstream(child, host)
    except BaseException as error:
        with child:  # ends it
            if isinstance(error, BrokenPipeError):
                raise UpstreamError("its process ended at once", child.last_lines()) from error
            raise


@contextmanager
def serve_here(spec: Mapping[str, Any]) -> Iterator[_native.Upstream]:
    """Serve as the simulated third party in this process while the context lasts.

    Raises UsageError for a specification that makes no sense, EngineError when the port cannot be had.
    """
    try:
        running = _native.Upstream(json.dumps(dict(spec)))
    except ValueError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise EngineError(str(error)) from error
    try:
        yield running
    finally:
        running.stop()
