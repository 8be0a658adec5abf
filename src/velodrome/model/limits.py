"""The machine given to the server."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """`cpus`: how many CPUs the server may use (None: what placement gives). `memory_bytes`: None is unlimited."""

    cpus: int | None = None
    memory_bytes: int | None = None
