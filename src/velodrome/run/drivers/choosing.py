"""Which driver a load asks for, found by its name: a file beside this one with a module-level `driver`."""

import pkgutil
from importlib import import_module

from velodrome.model.errors import UnknownDriverError
from velodrome.model.measurement import Placement
from velodrome.run import drivers
from velodrome.run.drivers.driver import Driver


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
