"""The engine, called in this process: a load's specification in, a `velodrome/load/1` document out.

    document = load(LoadSpec(url="http://127.0.0.1:8000/", rate=500, duration_s=10))

Next to nothing is imported: the first request of `velodrome load` waits for it.
"""

from __future__ import annotations

from velodrome import _native
from velodrome.model.errors import EngineError, LoadRefusedError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from dataclasses import dataclass
    from typing import Any, Literal
else:

    def dataclass(**_):
        """Leave a class as it is: to import `dataclasses` takes longer than the engine needs to send."""
        return lambda kind: kind


VERSION = _native.VERSION
BOUNDS = {
    "connections": (1, 1_000_000),
    "streams": (1, 65_535),
    "threads": (1, 1_024),
    "requests": (1, 1_000_000_000_000),
    "seed": (0, 2**64 - 1),
    "expect_status": (200, 999),
}
"""The whole numbers of a load, from and to, as the engine has them (`crates/engine/src/spec/check.rs`)."""


def check_whole(name: str, value: int | None, least: int, most: int) -> None:
    """Raise BadOptionError for a whole number out of bounds; None was not given.

    The engine says so too, but of no number that is no unsigned one of its size: that it cannot read.
    """
    if value is not None and not least <= value <= most:
        from velodrome.model.errors import BadOptionError  # noqa: PLC0415 - most are within

        raise BadOptionError(name, str(value), f"give a whole number from {least} to {most}")


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadSpec:
    """One load, in the fields of the engine (`crates/engine/src/spec.rs`): the only form in which it gets a load.

    The command line makes it of options, the driver of a trial's load and target, the check before a load of a target.
    """

    url: str
    """`http`, `https`, `grpc`, `grpcs`, `ws` or `wss`."""
    connections: int = 50
    """Exactly so many in a closed loop, at most in an open loop."""
    fewer_connections: bool = False
    """Be content with fewer where the limit of open files allows no more."""
    streams: int = 1
    """Concurrent requests of each connection; more than 1 over HTTP/2 only."""
    threads: int = 1
    duration_s: float | None = None
    """Of the measured span; this or `requests`, or neither with a `schedule`."""
    requests: int | None = None
    warmup_s: float = 0.0
    rate: float | None = None
    """Requests a second of an open loop; None: a closed loop."""
    schedule: Sequence[Mapping[str, Any]] = ()
    """Steps of an open loop whose rate changes (`drivers/load_document.py`)."""
    arrivals: Literal["constant", "poisson"] = "constant"
    seed: int = 1
    keepalive: bool = True
    timeout_s: float = 10.0
    drain_s: float = 2.0
    transport: str = "auto"
    allow_target: Sequence[str] = ()
    """Hosts that may be loaded although they are not this machine."""
    method: str = "GET"
    headers: Sequence[Sequence[str]] = ()
    """Name and value of each."""
    body: bytes = b""
    """Of the request; over gRPC the messages with their prefixes, over WebSockets the message."""
    expect_body: bytes | None = None
    """Compared with the whole body of responses; None: any body is correct."""
    expect_status: int | None = None
    """None: any 2xx."""
    expect_contains: str | None = None
    mix: Sequence[Mapping[str, Any]] = ()
    """Several requests by weight, instead of one (`drivers/load_document.py`)."""
    template: bool = False
    """Fill in `{{…}}` in paths, headers and bodies."""
    cookies: bool = False
    grpc: Mapping[str, Any] | None = None
    websocket: Mapping[str, Any] | None = None
    http2: bool = False
    insecure: bool = False
    """Accept any certificate."""
    cacert: str | None = None
    tls: Mapping[str, Any] | None = None
    unix: str | None = None
    """Path of a socket to connect to instead of the URL's host."""
    connect_to: Sequence[str] = ()
    """`HOST:PORT:ADDRESS:PORT`."""
    part: Mapping[str, int] | None = None
    """This is part `number` `of` several that make one load: of its requests it has every `of`-th."""

    if not TYPE_CHECKING:

        def __init__(self, **fields):
            if strange := fields.keys() - type(self).__annotations__.keys():
                raise TypeError(f"no fields of a load: {', '.join(sorted(strange))}")
            vars(self).update(fields, url=fields["url"])

        def __setattr__(self, name, value):
            raise AttributeError(f"{name} of a load cannot be changed")

    def changed(self, **fields: Any) -> LoadSpec:
        """Return it with other values of some fields."""
        return LoadSpec(**{**vars(self), **fields})

    def json(self) -> str:
        """Return what the engine reads, but for the bodies, which go beside it. Raises BadOptionError."""
        for name, (least, most) in BOUNDS.items():
            check_whole(name, getattr(self, name), least, most)
        fields = type(self).__annotations__.keys() - {"body", "expect_body"}
        values = {name: getattr(self, name) for name in sorted(fields)}
        return _native.to_json({name: value for name, value in values.items() if value is not None})


def schedule(spec: LoadSpec, count: int) -> list[int]:
    """Return when the first requests of an open loop, or of a part of one, are due: nanoseconds from its beginning.

    Raises UsageError for a load that makes no sense.
    """
    try:
        return _native.schedule(spec.json(), count)
    except ValueError as error:
        raise UsageError(str(error)) from error


def fill(text: bytes, seed: int, number: int) -> bytes:
    """Return a template (`docs/load.md`) filled in for the request of this number, as loads of this seed fill it.

    Raises ValueError for a placeholder that stands for nothing.
    """
    return _native.fill(text, seed, number)


def sum_of_histograms(parts: Sequence[tuple[str, float | None]]) -> tuple[str, dict[str, Any]] | None:
    """Add up histograms, each with its exact largest in milliseconds if that is known; return the sum and its
    percentiles, also in milliseconds. None: there are no histograms. Raises ValueError for what is none.
    """
    exact = [(text, None if largest is None else round(largest * 1e6)) for text, largest in parts]
    found = _native.sum_of_histograms(exact)
    return None if found is None else (found[0], _native.from_json(found[1]))


def load(spec: LoadSpec, on_event: Callable[[Mapping[str, Any]], bool] | None = None) -> dict[str, Any]:
    """Run a whole load and return what happened (docs/load-results.md).

    `on_event` gets each event of the engine; when it returns False the load ends early and what was measured
    until then is returned. No text in the document has a secret in it. Raises LoadRefusedError for a target that is not
    this machine, UsageError for a load that makes no sense, EngineError when this machine cannot carry it,
    KeyboardInterrupt when it ended before there was anything to measure.
    """

    def deliver(line: str) -> bool:
        return on_event is None or on_event(_native.from_json(line))

    try:
        found = _native.load(spec.json(), spec.body, spec.expect_body, deliver)
    except ValueError as error:
        raise UsageError(str(error)) from error
    except PermissionError as error:
        raise LoadRefusedError(str(error)) from error
    except InterruptedError:
        raise KeyboardInterrupt from None
    except OSError as error:
        raise EngineError(str(error)) from error
    # Not before: the first request would wait for it.
    from velodrome.model import secrets  # noqa: PLC0415

    document: dict[str, Any] = _native.from_json(found)
    return secrets.mask_noun(document)
