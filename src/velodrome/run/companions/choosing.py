"""Which companions a recipe asks for, found by name: files beside this one with a module-level `companion`.

beside = start(recipe.companions, ground, running)
Serving(..., beside=beside.variables)
"""

import pkgutil
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module

from velodrome.run import companions
from velodrome.run.companions.companion import Companion, Ground, Running


def known() -> dict[str, Companion]:
    """Return all kinds of companions, by name."""
    modules = (
        import_module(f"{companions.__name__}.{one.name}")
        for one in pkgutil.iter_modules(companions.__path__)
    )
    found = [
        module.companion for module in modules if isinstance(getattr(module, "companion", None), Companion)
    ]
    return {one.name: one for one in found}


@dataclass(frozen=True)
class Beside:
    """The companions that run, by name."""

    running: Mapping[str, Running]
    versions: Mapping[str, str]

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables with their addresses, for the server under test."""
        every = known()
        return {every[name].variable: one.url for name, one in self.running.items()}

    @property
    def pids(self) -> dict[str, int]:
        """The roots of the processes of those that run here for us."""
        return {name: one.pid for name, one in self.running.items() if one.pid is not None}


def start(names: Iterable[str], ground: Ground, running: ExitStack) -> Beside:
    """Start companions, all before any is waited for; `running` ends them.

    Raises what `Companion.start` and `Running.ready` raise.
    """
    every = known()
    started = {name: running.enter_context(every[name].start(ground)) for name in names}
    return Beside(started, {name: one.ready() for name, one in started.items()})
