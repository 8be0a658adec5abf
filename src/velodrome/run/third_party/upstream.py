"""The simulated third party in a process of its own, pinned, with what it did over the measured span.

with start(cpus=(1,), latency="200ms") as upstream:
    ... VELODROME_UPSTREAM=upstream.url ...
    upstream.begin(); ...; facts = upstream.end()
"""

import json
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from velodrome.model.app import Stall, ThirdParty
from velodrome.model.errors import UpstreamError
from velodrome.model.measurement import UpstreamFacts
from velodrome.run.supervision import lifeline
from velodrome.run.third_party.upstream_spec import answering

MODULE = "velodrome.run.third_party.upstream_process"
PATIENCE_S = 10.0
"""To start or to tell its facts; both take milliseconds on an idle machine."""


class Upstream:
    """A running third party; leaving the `with` block stops it."""

    def __init__(self, child: lifeline.Child, host: str) -> None:
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
        self._ask()

    def end(self) -> UpstreamFacts:
        """The measured span is over: return what happened since `begin`. Raises UpstreamError."""
        since = self._ask()["since"]
        return UpstreamFacts(
            requests=since["requests"],
            cpu_s=since["cpu_s"],
            late_p50_ms=since["late_ms"]["p50"],
            late_p99_ms=since["late_ms"]["p99"],
        )

    def _ask(self) -> Mapping[str, Any]:
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


def begin(several: Sequence[Upstream]) -> None:
    """The measured span begins, for all of them. Raises UpstreamError."""
    for one in several:
        one.begin()


def end(several: Sequence[Upstream]) -> UpstreamFacts | None:
    """The measured span is over: return what happened in all of them together; None where there is none.

    How late they were is told of the one that was latest: percentiles cannot be added. Raises UpstreamError.
    """
    every = [one.end() for one in several]
    if not every:
        return None
    return UpstreamFacts(
        requests=sum(one.requests for one in every),
        cpu_s=sum(one.cpu_s for one in every),
        late_p50_ms=max((one.late_p50_ms for one in every if one.late_p50_ms is not None), default=None),
        late_p99_ms=max((one.late_p99_ms for one in every if one.late_p99_ms is not None), default=None),
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
    told = Stall(stall["for_s"], stall["every_s"]) if stall is not None else None
    return start_as(ThirdParty("", latency, errors, told, size=body), cpus=cpus, seed=seed, host=host)


def start_as(
    third: ThirdParty, *, cpus: Sequence[int] = (), seed: int = 1, host: str = "127.0.0.1"
) -> Upstream:
    """Start one that answers as `third` says. Raises UpstreamError."""
    spec = {"host": host, "port": 0, **answering(third), "threads": 1, "seed": seed}
    child = lifeline.start(MODULE, cpus=cpus)
    try:
        child.input.write(json.dumps(spec).encode() + b"\n")
        return Upstream(child, host)
    except BaseException as error:
        with child:  # ends it
            if isinstance(error, BrokenPipeError):
                raise UpstreamError("its process ended at once", child.last_lines()) from error
            raise
