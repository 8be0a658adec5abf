"""The nouns of companions: a kind of server that recipes ask, and one of it that runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self


@dataclass(frozen=True)
class Ground:
    """Where a companion is to run, and with what: plain data."""

    guest_tree: Path
    cpus: tuple[int, ...] = ()
    host: str = "127.0.0.1"
    given: Mapping[str, str] = field(default_factory=dict)
    """URLs of those that the user brings, by name; velodrome's own environment variables count as well."""
    walled: bool = False
    """Whether nothing outside can be reached, because the server is behind a link."""


class Running(Protocol):
    """A companion that is there or about to be; leaving the `with` block ends it, if it is ours."""

    @property
    def url(self) -> str:
        """What the server under test is given."""

    def ready(self) -> str:
        """Wait until it has given a right answer, and return its version as it tells itself.

        Raises CompanionFailedError when it has ended or the time is up.
        """

    @property
    def pid(self) -> int | None:
        """The root of its processes; None where it runs elsewhere, on behalf of somebody else."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""


@dataclass(frozen=True)
class Companion:
    """A kind: one file in this folder has a module-level `companion`."""

    name: str
    """As `Recipe.companions` names it, e.g. `mariadb`."""
    variable: str
    """Environment variable that carries its address into the server under test."""
    install: Callable[[Ground], object]
    """Makes the environments that `start` needs: before a race, so that nothing is installed in its midst."""
    start: Callable[[Ground], Running]
    """Does not wait for it. Raises CompanionMissingError, StartRefusedError or EnvironmentFailedError."""
