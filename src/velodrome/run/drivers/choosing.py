"""Which driver a load asks for, found by its name: a file beside this one with a module-level `driver`."""

import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module, metadata

from velodrome.model.errors import UnknownDriverError, UsageError
from velodrome.model.measurement import Placement
from velodrome.run import drivers
from velodrome.run.drivers.driver import Driver
from velodrome.run.drivers.foreign import Tool

OWN = "velodrome"
"""What is not a tool of others."""


@dataclass(frozen=True)
class Available:
    """A driver, and whether it can be used here."""

    name: str
    about: str
    version: str
    path: str
    why_not: str
    """With the cure; empty when it can be used."""


def known() -> list[str]:
    """Return the names of all drivers."""
    names = (module.name for module in pkgutil.iter_modules(drivers.__path__))
    return [name for name in names if hasattr(import_module(f"{drivers.__name__}.{name}"), "driver")]


def choose(name: str, placed: Placement, seed: int) -> Driver:
    """Return the driver called `name`, to run on the CPUs for load. Raises UnknownDriverError."""
    if name not in known():
        raise UnknownDriverError(name, known())
    made: Driver = import_module(f"{drivers.__name__}.{name}").driver(cpus=placed.load_cpus, seed=seed)
    return made


def available() -> Iterator[Available]:
    """Yield every driver, velodrome's own first."""
    about = "closed and open loop, latency from when requests were due, in a process of its own"
    yield Available(OWN, about, metadata.version("velodrome"), "", "")
    for name in known():
        if name == OWN:
            continue
        tool: Tool = import_module(f"{drivers.__name__}.{name}").TOOL
        try:
            found = tool.find()
        except UsageError as error:
            yield Available(name, tool.about, "", "", str(error))
        else:
            yield Available(name, tool.about, found.version, found.path, "")
