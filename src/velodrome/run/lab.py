"""The lab: what all server sessions of a race share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack
from velodrome.model.app import App, Request, ThirdParty
from velodrome.model.errors import UsageError
from velodrome.model.measurement import Measurement, Placement
from velodrome.model.profile import Profile
from velodrome.model.trial import Trial
from velodrome.run.drivers.driver import Driver, choose_driver
from velodrome.run.environments.environment import Environment, environment_for, overlay_for
from velodrome.run.injecting import Injected
from velodrome.run.machine import facts
from velodrome.run.machine.limits import Hierarchy
from velodrome.run.servers import STOP_SECONDS
from velodrome.run.third_party import ThirdPartyOf, start_as

START_SECONDS = 10.0
"""To the first right answer, on top of what the recipe takes."""


class DriverOf(Protocol):
    """Makes the driver of one load, on the CPUs for load."""

    def __call__(self, name: str, placed: Placement, seed: int) -> Driver:
        """Raise UsageError for a driver that is not known."""


class EnvironmentOf(Protocol):
    """Makes, or finds, what a contestant's server runs in."""

    def __call__(
        self, stack: Stack, asked: str | None, packages: Mapping[str, str], served: Recipe | None = None, /
    ) -> Environment:
        """`asked` is the interpreter, `packages` are versions instead of the pinned. Raise VelodromeError.

        A recipe that is served brings the clients of its databases.
        """


class OverlayOf(Protocol):
    """Makes, or finds, what serves a user's app: its interpreter and packages, with a stack's server over them."""

    def __call__(self, stack: Stack, app: App, /) -> Environment:
        """Raise VelodromeError."""


class OnMeasured(Protocol):
    """Hears of each load that a standing server carried."""

    def __call__(self, measured: Measurement, /) -> None:
        """Note it."""


class ProfileOf(Protocol):
    """Profiles one contestant under one load."""

    def __call__(self, trial: Trial, lab: "Lab", folder: Path, /) -> Profile:
        """Write stacks into `folder`; a profile that cannot be taken tells why in `failed`."""


@dataclass(frozen=True)
class OnHosts:
    """Which agents serve, load and have third parties, by name or address; empty: by their roles."""

    server: str = ""
    """While others load it; with no agent of that role either, each of them serves and loads, block by block."""
    load: tuple[str, ...] = ()
    third_party: str = ""

    @property
    def any(self) -> bool:
        """Whether one is named."""
        return bool(self.server or self.load or self.third_party)

    def refuse_without(self, agents: str) -> None:
        """Raise UsageError for hosts that are named where there are no agents."""
        named = {"--server-on": self.server, "--load-from": self.load, "--third-party-on": self.third_party}
        if not agents and (given := [name for name, value in named.items() if value]):
            raise UsageError(
                f"{given[0]} names a host of agents, and there are none; add --agents tls://host:8786 "
                "(docs/cluster.md)"
            )


@dataclass(frozen=True)
class Apart:
    """A host that is the server's alone: agents on other hosts load it, and answer as its third parties."""

    address: str
    """Of the server's host, as the others reach it: servers listen on it, and on nothing else."""
    load_cpus: tuple[int, ...] = ()
    """CPUs of the server's machine that loading agents use all the same; empty: they are on other machines."""


@dataclass(frozen=True)
class Lab:
    """What all server sessions of a race share: plain data, and the parts that tests replace."""

    stacks: Mapping[str, Stack]
    guest_tree: Path
    driver: DriverOf = choose_driver
    third_party: ThirdPartyOf = start_as
    apart: Apart | None = None
    """None: load and third parties are on this machine, too."""
    cpus: tuple[int, ...] = field(default_factory=facts.usable_cpus)
    where: Mapping[str, Hierarchy] = field(default_factory=dict)
    """Where control groups can be made; empty: affinity and rlimits."""
    environment: EnvironmentOf = environment_for
    overlay: OverlayOf = overlay_for
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values of the environment variables that apps name. They may be secrets: nothing stores them."""
    requests: tuple[Request, ...] = ()
    """What is asked of its apps, with the secrets that these withhold; empty: what they say is all."""
    third_parties: tuple[ThirdParty, ...] = ()
    """Those of its apps, with the secrets of their answers that these withhold; empty: what they say is all."""
    databases: Mapping[str, str] = field(default_factory=dict)
    """URLs of databases that the user brings, by name; others are started here."""
    turn_ns: Mapping[str, str] = field(default_factory=dict)
    """Nanoseconds of one turn of the recipes' CPU loop, by version of Python; one not told calibrates itself."""
    start_seconds: float = START_SECONDS
    stop_seconds: float = STOP_SECONDS
    extra: tuple[str, ...] = ()
    """Paths of the stacks that do not ship."""
    profile: ProfileOf | None = None
    """Takes profiles; None: none are taken."""
    injected: Injected | None = None
    """What the processes of its servers are given; None: nothing."""
    unasked: bool = False
    """A server is ready when it listens, and gets no request before that; else when it has answered one right."""
    measured: OnMeasured | None = None
    """Hears of what standing servers carry (`run/instruments/standing.py`); None: nobody does."""
