"""The machine given to the server."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Limits:
    """`cpus`: how many CPUs the server may use (None: what placement gives). `memory_bytes`: None is unlimited.

    With `all` the server has every CPU there is, and shares with the generator what that needs.
    """

    cpus: int | Literal["all"] | None = None
    memory_bytes: int | None = None
