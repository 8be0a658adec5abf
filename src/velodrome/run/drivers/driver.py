"""What every load generator looks like to a trial: plain data in, events while it runs, facts at the end.

driver = VelodromeDriver(cpus=(1,))
facts = driver.run(load, Target("http://127.0.0.1:8000/"), on_event=sampler.on)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import urlsplit

from velodrome.guest import plugins
from velodrome.guest.recipe import Recipe
from velodrome.model.app import Request
from velodrome.model.errors import UnknownDriverError, UsageError
from velodrome.model.load import Load
from velodrome.model.measurement import LoadFacts, Placement
from velodrome.run import calls
from velodrome.run.calls import ChatCall, DescribedCall, GrpcCall


@dataclass(frozen=True)
class Target:
    """What is requested of the server, and what a right answer is."""

    url: str
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    expect_body: bytes | None = None
    """Compared with the body of answers; None: any body is right."""
    expect_status: int | None = None
    """None: any 2xx is right."""
    allow: tuple[str, ...] = ()
    """Hosts beyond loopback that the user named."""
    call: GrpcCall | DescribedCall | None = None
    """What is called on a gRPC server, in the place of method, bodies and status."""
    chat: ChatCall | None = None
    """What is sent to a server that holds WebSockets, in their place."""
    mix: tuple[Request, ...] = ()
    """Several requests by weight, each with its right answer, in the place of method, bodies and status."""

    @property
    def path(self) -> str:
        """Path and query, as they stand in a request."""
        parts = urlsplit(self.url)
        return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    @property
    def is_grpc(self) -> bool:
        """Whether the server speaks gRPC."""
        return self.call is not None

    @property
    def address(self) -> str:
        """`host:port`."""
        return urlsplit(self.url).netloc

    @staticmethod
    def of_recipe(url: str, recipe: Recipe, head_bytes: int | None = None) -> "Target":
        """Return what to ask of a server of `recipe`; `head_bytes` as `Recipe.answer` takes it."""
        if url.startswith("grpc"):
            # Other generators make their own messages of the upload.
            return Target(url, body=recipe.upload, call=calls.grpc_of_recipe(recipe))
        if url.startswith("ws"):
            return Target(url, headers=recipe.headers, chat=calls.chat_of_recipe(recipe))
        return Target(
            url,
            recipe.method,
            recipe.headers,
            recipe.upload,
            recipe.answer(head_bytes),
            expect_status=200,
        )

    @staticmethod
    def of_requests(url: str, requests: Sequence[Request], allow: Sequence[str] = ()) -> "Target":
        """Return what to ask of the server at `url`, a base without path: one plain request, or a mix by weight.

        A request that is the same each time stands in the fields that every driver knows; only velodrome's own carries
        several, a request with templates, or a request whose right answer has a text somewhere in it.
        """
        base = url.rstrip("/")
        only = requests[0] if len(requests) == 1 else None
        if only is None or only.has_templates or only.expect_contains is not None:
            return Target(f"{base}/", allow=tuple(allow), mix=tuple(requests))
        return Target(
            base + only.path,
            only.method,
            only.headers,
            only.body.data if only.body is not None else b"",
            only.expect_body.data if only.expect_body is not None else None,
            only.expect_status,
            tuple(allow),
        )


@dataclass(frozen=True)
class LoadEvent:
    """Something a driver reported while it ran.

    Every driver tells `started` (`pid`: its process), `measuring` and `span_ended` (`monotonic_ns`, on
    CLOCK_MONOTONIC); velodrome's own also `connected` and several `tick` a second. A driver that cannot tell
    where its measured span begins and ends tells the start and the end of its process.
    """

    kind: str
    facts: Mapping[str, Any] = field(default_factory=dict)


OnEvent = Callable[[LoadEvent], bool]
"""Called as events arrive, on the thread that called `Driver.run`; False ends the load early."""


class Driver(Protocol):
    """A load generator. One file in this folder each."""

    @property
    def name(self) -> str:
        """As `Load.driver` says it."""

    def run(self, load: Load, target: Target, on_event: OnEvent) -> LoadFacts:
        """Load `target` to the end of the drain and return what happened.

        Called by a thread that is in the network the load is to come from (`run/link`): what this thread starts
        is in it too.

        Raises DriverError when the generator crashed, hung or reported nothing that can be trusted: such a run is
        never a result. Raises UsageError for a load this driver cannot carry.
        """


@dataclass(frozen=True)
class Found:
    """A load generator that is installed here and can be driven."""

    path: str
    """Empty: it is velodrome itself."""
    version: str


@dataclass(frozen=True)
class Generator:
    """What a file of this folder, or an entry point of `velodrome.drivers`, has as its module-level `driver`."""

    name: str
    """As `Load.driver` says it."""
    about: str
    """What it can carry, in a line."""
    make: Callable[[Sequence[int], int], Driver]
    """Given the CPUs for load (all when none are) and a seed."""
    find: Callable[[], Found]
    """Raises a UsageError with the cure where it is not installed."""


OWN = "velodrome"
"""What is not a tool of others."""
DRIVERS = plugins.Kind("driver", Generator, "velodrome.run.drivers", "velodrome.drivers", mixed=True)


@dataclass(frozen=True)
class AvailableDriver:
    """A driver, and whether it can be used here."""

    name: str
    about: str
    version: str
    path: str
    why_not: str
    """With the cure; empty when it can be used."""


def driver_names() -> list[str]:
    """Return the names of all drivers."""
    return list(plugins.healthy(DRIVERS))


def choose_driver(name: str, placed: Placement, seed: int) -> Driver:
    """Return the driver called `name`, to run on the CPUs for load. Raises UnknownDriverError."""
    found = plugins.healthy(DRIVERS)
    if name not in found:
        raise UnknownDriverError(name, list(found))
    chosen: Generator = found[name]
    return chosen.make(placed.load_cpus, seed)


def available_drivers() -> Iterator[AvailableDriver]:
    """Yield every driver, velodrome's own first; a driver that cannot be loaded says why not."""
    for entry in sorted(plugins.entries(DRIVERS), key=lambda entry: entry.name != OWN):
        if entry.error:
            yield AvailableDriver(entry.name, "", "", "", f"{entry.origin} cannot be loaded: {entry.error}")
            continue
        try:
            found = entry.thing.find()
        except UsageError as error:
            yield AvailableDriver(entry.name, entry.thing.about, "", "", str(error))
        else:
            yield AvailableDriver(entry.name, entry.thing.about, found.version, found.path, "")
