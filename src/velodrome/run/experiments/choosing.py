"""Which kind of experiment is asked for, found by its name: a file beside this one with a module-level `experiment`."""

import pkgutil
from collections.abc import Mapping
from importlib import import_module

from velodrome.model.claim import Experiment, Setting
from velodrome.model.errors import UnknownNameError
from velodrome.run import experiments
from velodrome.run.experiments.experiment import Kind


def known() -> dict[str, Kind]:
    """Return all kinds by name, sorted."""
    found = {}
    for module in pkgutil.iter_modules(experiments.__path__):
        kind = getattr(import_module(f"{experiments.__name__}.{module.name}"), "experiment", None)
        if isinstance(kind, Kind):
            found[kind.name] = kind
    return dict(sorted(found.items()))


def settings() -> dict[str, Mapping[str, Setting]]:
    """Return the settings of every kind with their defaults, for study files to be checked against."""
    return {name: kind.defaults for name, kind in known().items()}


def settings_of(experiment: Experiment) -> dict[str, Setting]:
    """Return all settings of an experiment, defaults filled in; its own alone where its kind is not known."""
    kind = known().get(experiment.kind)
    return {**(kind.defaults if kind else {}), **experiment.settings}


def choose(name: str) -> Kind:
    """Return the kind called `name`. Raises UnknownNameError."""
    kinds = known()
    if name not in kinds:
        raise UnknownNameError("experiment", name, list(kinds))
    return kinds[name]
