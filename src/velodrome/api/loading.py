"""`velodrome.load`: load a server, or an app that is served for it, and return figures that know how sure they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from velodrome.api import frames, showing
from velodrome.api.apps import asked_of
from velodrome.api.spans import seconds_of
from velodrome.judge.loaded import Blocks
from velodrome.judge.measured import Measured
from velodrome.model.errors import UsageError
from velodrome.model.quantity import in_unit
from velodrome.model.request import Content, Request
from velodrome.report import names
from velodrome.run.drivers.driver import Target
from velodrome.run.machine.measuring_lock import alone
from velodrome.track import loading
from velodrome.track.loading import Terms

WAIT_S = 600.0
"""For another velodrome that measures on this machine: tests may run at the same time, loads may not."""
PERCENTILES = (50, 90, 99, 99.9)


@dataclass(frozen=True)
class Loaded(frames.Tabled):
    """What came of a load. A figure compared with a limit is surely on one side of it, or InsufficientDataError."""

    target: str
    """The URL, or the app."""
    blocks: Blocks

    def percentile(self, percentile: float, since: str = "due") -> Measured:
        """Return the latency within which so many of 100 requests stayed, from when they were due, or `"sent"`."""
        return self.blocks.percentile(percentile, since)

    @property
    def p50(self) -> Measured:
        """Latency, half of the requests."""
        return self.percentile(50)

    @property
    def p90(self) -> Measured:
        """Latency, 90 %."""
        return self.percentile(90)

    @property
    def p95(self) -> Measured:
        """Latency, 95 %."""
        return self.percentile(95)

    @property
    def p99(self) -> Measured:
        """Latency, 99 %."""
        return self.percentile(99)

    @property
    def p999(self) -> Measured:
        """Latency, 99.9 %."""
        return self.percentile(99.9)

    @property
    def mean(self) -> Measured:
        """Mean latency."""
        return self.blocks.mean

    @property
    def throughput(self) -> Measured:
        """Right answers a second."""
        return self.blocks.throughput

    @property
    def errors(self) -> Measured:
        """The share of requests without a right answer."""
        return self.blocks.errors

    @property
    def cpu(self) -> Measured:
        """Microseconds of the server's CPU for each right answer; of an app that was served for this load."""
        return self.blocks.cpu

    @property
    def memory(self) -> Measured:
        """The most memory of the server; of an app that was served for this load."""
        return self.blocks.memory

    @property
    def requests(self) -> int:
        """How many were made."""
        return sum(one.facts.requests for one in self.blocks.every)

    @property
    def figures(self) -> tuple[Measured, ...]:
        """The usual ones."""
        latencies = (self.percentile(one) for one in PERCENTILES)
        return self.throughput, *latencies, self.mean, self.errors, self.cpu, self.memory

    def rows(self) -> list[frames.Row]:
        """Return one row a block."""
        return [
            {
                "target": self.target,
                "load": self.blocks.load.label,
                "block": number,
                "requests": one.facts.requests,
                "ok": one.facts.ok,
                "duration_s": one.facts.duration_s,
                "throughput_rps": one.facts.throughput_rps,
                "cpu_us": one.cpu_us,
                "memory_bytes": one.memory_bytes,
                "set_aside": one.doubt,
                **{
                    f"{name}_ms": getattr(one.facts.due, name)
                    for name in ("mean", "p50", "p90", "p99", "p99_9", "max")
                },
            }
            for number, one in enumerate(self.blocks.every)
        ]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, (self.throughput, self.p50, self.p99, self.errors)))
        return f"<{self.target} under {names.load(self.blocks.load)}: {shown}>"

    def _repr_html_(self) -> str:
        rows = [(one.name, in_unit(one.interval, one.unit), one.missing) for one in self.figures]
        title = f"{self.target}, {names.load(self.blocks.load)}"
        return showing.table(title, ("", "[95 %]", ""), rows)


def load(
    target: object,
    *,
    rate: float | None = None,
    connections: int | None = None,
    duration: float | str = 10.0,
    warmup: float | str = 1.0,
    timeout: float | str = 10.0,
    blocks: int = loading.BLOCKS,
    method: str = "GET",
    path: str = "/",
    headers: Mapping[str, str] | None = None,
    body: bytes | str = b"",
    expect_status: int | None = None,
    expect_body: bytes | str | None = None,
    allow_target: Sequence[str] = (),
    **of_app: Any,
) -> Loaded:
    """Load a server at `rate` requests a second, or by `connections` in a closed loop, for `duration` in all.

    `target` is a URL, or an app: its import path (`"shop.wsgi:application"`), or the object itself, which a server
    process imports from its module. `path` is what is asked of an app, and `of_app` says how it is served: `stack`,
    `knobs`, `python`, `cwd`, `env`, `interface`, `upstreams`. Latency is from when requests were due; any 2xx is right
    unless told.

    Raises NothingAnsweredError, LoadRefusedError, UsageError and what else cannot be run.
    """
    terms = Terms(rate, connections, seconds_of(duration), seconds_of(warmup), seconds_of(timeout), blocks)
    asking = Target(
        "",
        method,
        tuple((headers or {}).items()),
        _bytes(body),
        None if expect_body is None else _bytes(expect_body),
        expect_status,
        tuple(allow_target),
    )
    if isinstance(target, str) and "://" in target:
        if of_app:
            raise UsageError(f"{', '.join(of_app)}: only for an app; {target} is served already")
        with alone(f"load of {target}", WAIT_S):
            return Loaded(target, loading.load(replace(asking, url=target), terms))
    stack, knobs = of_app.pop("stack", ""), of_app.pop("knobs", None)
    request = Request(
        f"{method} {path}",
        path,
        method,
        headers=asking.headers,
        body=Content.of(asking.body) if asking.body else None,
        expect_status=expect_status,
        expect_body=None if asking.expect_body is None else Content.of(asking.expect_body),
    )
    asked = asked_of(target, (request,), **of_app)
    with alone(f"load of {asked.app}", WAIT_S):
        return Loaded(asked.app, loading.load_app(asked, terms, stack, knobs))


def _bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else text
