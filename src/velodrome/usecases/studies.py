"""What a study may name on this installation."""

from collections.abc import Callable, Mapping, Sequence

from velodrome.guest import catalog
from velodrome.guest.stack import Stack
from velodrome.model.files import Named
from velodrome.model.study import Study
from velodrome.plan import study_file, untrusted
from velodrome.plan.findings import Known
from velodrome.run.drivers import driver
from velodrome.run.experiments import experiment as experiments
from velodrome.run.trusted import Trusted


def known(stacks: Mapping[str, Stack] | None = None) -> Known:
    """Return all there is: stacks (those given, else those that ship), recipes, drivers, kinds of experiment."""
    every = catalog.stacks() if stacks is None else stacks
    return Known(every, catalog.recipes(), driver.driver_names(), experiments.settings())


Ask = Callable[[str, Sequence[Named]], bool]
"""Asks the user about what the file at a path names; returns whether it is allowed."""


class Trust:
    """Decides; `given`: the user has allowed all that is named. Without `ask` nobody can decide."""

    def __init__(self, *, given: bool, ask: Ask | None, say: Callable[[str], None]) -> None:
        self._given, self._ask = given, ask
        self._trusted = Trusted(say)

    def see(self, path: str, things: Sequence[Named]) -> None:
        """Return when all that the file at `path` names is allowed. Raises UntrustedError, CacheError."""
        unknown = self._trusted.unknown(things, path)
        if not unknown:
            return
        if not self._given and (self._ask is None or not self._ask(path, unknown)):
            untrusted.refuse(path, unknown)
        self._trusted.remember(unknown, path)

    def see_study(self, name: str, study: Study) -> None:
        """Do so with what a study names that was found by a name or a path: a study that ships is trusted."""
        path = study_file.find_study(name)
        if not path.resolve().is_relative_to(study_file.studies_folder().resolve()):
            self.see(str(path), untrusted.of_study(study))
