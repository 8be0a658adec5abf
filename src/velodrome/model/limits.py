"""The machine given to the server."""

from dataclasses import dataclass
from typing import Literal, Self

from velodrome.model.memory_text import memory_bytes


@dataclass(frozen=True)
class Limits:
    """`cpus`: how many CPUs the server may use (None: what placement gives). `memory_bytes`: None is unlimited.

    With `all` the server has every CPU there is, and shares with the generator what that needs.
    """

    cpus: int | Literal["all"] | None = None
    memory_bytes: int | None = None

    @classmethod
    def of(cls, cpus: int | None, memory: str = "") -> Self:
        """Return them as people type them: memory as `512MB`, empty is unlimited. Raises ValueError."""
        return cls(cpus, memory_bytes(memory) if memory else None)
