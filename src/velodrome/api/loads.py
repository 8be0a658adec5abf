"""`velodrome.load`: load a server, or an app that is served for it, and return figures that know how sure they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from velodrome.api import tables
from velodrome.api.apps import Asks, Headers, app_spec, link_of, mix_of, seconds_of
from velodrome.api.arguments import checked
from velodrome.guest.stack import KnobValue
from velodrome.judge.loaded import Blocks, Measured
from velodrome.model import secrets
from velodrome.model.app import Content, Request, register_secrets
from velodrome.model.errors import UsageError
from velodrome.model.load import INDEPENDENT, Arrivals
from velodrome.model.quantity import in_unit
from velodrome.plan.requests.lines import check_headers, with_headers
from velodrome.report import names
from velodrome.run.drivers.driver import Target
from velodrome.run.faults import refusals
from velodrome.run.machine.measuring_lock import alone
from velodrome.usecases import load_blocks
from velodrome.usecases.load_blocks import On, Terms

if TYPE_CHECKING:
    from velodrome.api.diagnosing import Examined

WAIT_S = 600.0
"""For another velodrome that measures on this machine: tests may run at the same time, loads may not."""
PERCENTILES = (50, 90, 99, 99.9)


@dataclass(frozen=True)
class Loaded(tables.Tabled):
    """What came of a load. A figure compared with a limit is surely on one side of it, or InsufficientDataError."""

    target: str
    """The URL, without its secrets, or the app."""
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
        return sum(block.facts.requests for block in self.blocks.every)

    @property
    def figures(self) -> tuple[Measured, ...]:
        """The usual percentiles."""
        latencies = (self.percentile(percentile) for percentile in PERCENTILES)
        return self.throughput, *latencies, self.mean, self.errors, self.cpu, self.memory

    def rows(self) -> list[tables.Row]:
        """Return one row a block."""
        return [
            {
                "target": self.target,
                "load": self.blocks.load.label,
                "block": number,
                "requests": block.facts.requests,
                "ok": block.facts.ok,
                "duration_s": block.facts.duration_s,
                "throughput_rps": block.facts.throughput_rps,
                "cpu_us": block.cpu_us,
                "memory_bytes": block.memory_bytes,
                "set_aside": block.doubt,
                **{
                    f"{name}_ms": getattr(block.facts.due, name)
                    for name in ("mean", "p50", "p90", "p99", "p99_9", "max")
                },
            }
            for number, block in enumerate(self.blocks.every)
        ]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, (self.throughput, self.p50, self.p99, self.errors)))
        return f"<{self.target} under {names.load(self.blocks.load)}: {shown}>"

    def _repr_html_(self) -> str:
        rows = [
            (figure.name, in_unit(figure.interval, figure.unit), figure.missing) for figure in self.figures
        ]
        title = f"{self.target}, {names.load(self.blocks.load)}"
        return tables.table(title, ("", "[95 %]", ""), rows)


@refusals()
@checked(app_spec)
def load(
    target: object,
    *,
    rate: float | None = None,
    connections: int | None = None,
    duration: float | str = 10.0,
    warmup: float | str = 1.0,
    timeout: float | str = 10.0,
    blocks: int = load_blocks.BLOCKS,
    arrivals: Arrivals = INDEPENDENT,
    requests: Asks = (),
    method: str = "GET",
    path: str = "/",
    headers: Headers = (),
    body: bytes | str = b"",
    expect_status: int | None = None,
    expect_body: bytes | str | None = None,
    allow_target: Sequence[str] = (),
    agents: str | int | None = None,
    keys: str | Path | None = None,
    stack: str = "",
    knobs: Mapping[str, KnobValue] | None = None,
    link: str = "",
    **of_app: Any,
) -> Loaded:
    """Load a server at `rate` requests a second, or by `connections` in a closed loop, for `duration` in all.

    Requests at a rate fall due as those of independent users do, or with `arrivals="constant"` at even gaps.

    `target` is a URL, or an app: its import path (`"shop.wsgi:application"`), or the object itself, which a server
    process imports from its module. `path` is what is requested of an app, or `requests`, such as `"GET /cart?id=7"` or
    those of `velodrome.requests`, in its place and in that of `method`, `body` and what is expected. An app is served
    on `stack` with `knobs`, behind `link` (`"rtt=40ms"`); `of_app` is what `app_spec` takes. Latency is from when
    requests were due; any 2xx is right unless given. `agents` carry the load of a URL: those of a coordinator
    (`"tls://host:8786"`, with its certificates in the folder `keys`), or so many of this machine.

    Raises NothingAnsweredError, LoadRefusedError, UsageError and what else cannot be run; AgentLostError where an agent
    was lost.
    """
    terms = Terms(
        rate, connections, seconds_of(duration), seconds_of(warmup), seconds_of(timeout), blocks, arrivals
    )
    request = Request(
        f"{method} {path}",
        path,
        method,
        body=Content.of(_bytes(body)) if body else None,
        expect_status=expect_status,
        expect_body=None if expect_body is None else Content.of(_bytes(expect_body)),
    )
    if requests and request != Request("GET /"):
        raise UsageError(
            "requests define everything that is sent: leave out method, path, body and what is expected"
        )
    mix = mix_of(requests) if requests else (request,)
    if isinstance(target, str) and "://" in target:
        served = [name for name, given in (("stack", stack), ("knobs", knobs), ("link", link)) if given]
        if options := [*served, *of_app]:
            raise UsageError(f"{', '.join(options)}: only for an app; {target} is served already")
        whole = with_headers(mix, check_headers(headers))
        secrets.of_text(target)
        register_secrets(whole, [name for name, _ in check_headers(headers)])
        shown = secrets.mask(target)
        asking = _of_paths(target, whole) if requests else _of_url(target, whole[0])
        with alone(f"load of {shown}", WAIT_S):
            asking = replace(asking, allow=tuple(allow_target))
            by = None if agents is None else str(agents)
            found = load_blocks.load(asking, terms, by, None if keys is None else Path(keys))
            return Loaded(shown, found)
    if agents is not None:
        raise UsageError("agents: they load a URL; an app is served and loaded on this machine")
    on = On(stack, knobs or {}, link_of(link))
    spec = app_spec(target, mix, headers=headers, **of_app)
    with alone(f"load of {spec.app}", WAIT_S):
        return Loaded(spec.app, load_blocks.load_app(spec, terms, on))


def _of_url(url: str, request: Request) -> Target:
    """Return the target at a URL, which says the path itself."""
    body = request.body.data if request.body else b""
    right = request.expect_body.data if request.expect_body else None
    return Target(url, request.method, request.headers, body, right, request.expect_status)


def _of_paths(url: str, mix: Sequence[Request]) -> Target:
    """Return the target of requests that say their paths. Raises UsageError for a URL that has a path, too."""
    if urlsplit(url).path not in ("", "/"):
        raise UsageError("requests say the paths: give the URL without a path")
    return Target.of_requests(url, mix)


def _bytes(text: bytes | str) -> bytes:
    return text.encode() if isinstance(text, str) else text


class Velodrome:
    """Loads and examines servers and apps for a test."""

    def load(self, target: object, **how: Any) -> Loaded:
        """Load a URL, or an app that is served for it; `how` is what `velodrome.load` takes."""
        return load(target, **how)

    def diagnose(self, app: object, **how: Any) -> "Examined":
        """Prove what is wrong with an app: `assert velodrome.diagnose(app).healthy`; waits for other loads to end.

        `how` is what `velodrome.diagnose` takes.
        """
        from velodrome.api.diagnosing import diagnose  # noqa: PLC0415 - few tests ask for it

        return diagnose(app, **{"wait": True, **how})
