"""What a kind of experiment is: a file in this folder with a module-level `experiment = Kind(...)`, found by its name.

    def run(settings: Mapping[str, Setting], lab: Lab) -> Outcome:
        ...
        return Outcome({"mismatches": 0.0}, "Every request found its own marker again.")


    experiment = Kind("canary", "does a marker kept for a request stay with it?", run, {"requests": 1000})

It runs in a process of its own (`running.py`), which is ended with all it started when its deadline has passed,
so it may block; but it should bound what it waits for itself: then its facts are more than «it did not end».
Settings called `stack` or `stacks` name stacks: they are checked in the study file, and their environments are
made before the clock starts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from velodrome.guest import plugins
from velodrome.model.claim import Experiment, Fact, Setting
from velodrome.model.errors import UnknownNameError
from velodrome.run.lab import Lab


@dataclass(frozen=True)
class Outcome:
    """What an experiment came to."""

    facts: Mapping[str, Fact]
    """By name; units are in the names. A dot tells of whom: `mismatches.gunicorn-gevent`. None: not known."""
    sentence: str
    """What was seen, for people."""
    last_lines: tuple[str, ...] = ()
    """The end of what the programs under test printed."""


@dataclass(frozen=True)
class Kind:
    """One kind of experiment."""

    name: str
    """As study files name it; the file is called like it."""
    about: str
    """The question it answers."""
    run: Callable[[Mapping[str, Setting], Lab], Outcome]
    """Called with every setting, defaults filled in. What it raises is reported as the reason of a failure."""
    defaults: Mapping[str, Setting] = field(default_factory=dict)
    deadline_s: float = 60.0
    """After this it is ended, and that is its finding."""


STACK_SETTINGS = ("stack", "stacks")


def stacks_of(settings: Mapping[str, Setting]) -> tuple[str, ...]:
    """Return the names of the stacks that settings name."""
    found: list[str] = []
    for key in STACK_SETTINGS:
        value = settings.get(key, ())
        found += [value] if isinstance(value, str) and value else value if isinstance(value, tuple) else []
    return tuple(dict.fromkeys(found))


EXPERIMENTS = plugins.Kind(
    "experiment", Kind, "velodrome.run.experiments", "velodrome.experiments", mixed=True
)


def known_kinds() -> dict[str, Kind]:
    """Return all kinds by name, sorted: those of this folder, and those of entry points of `velodrome.experiments`."""
    return plugins.healthy(EXPERIMENTS)


def settings() -> dict[str, Mapping[str, Setting]]:
    """Return the settings of every kind with their defaults, for study files to be checked against."""
    return {name: kind.defaults for name, kind in known_kinds().items()}


def settings_of(experiment: Experiment) -> dict[str, Setting]:
    """Return all settings of an experiment, defaults filled in; its own alone where its kind is not known."""
    kind = known_kinds().get(experiment.kind)
    return {**(kind.defaults if kind else {}), **experiment.settings}


def kind_of(name: str) -> Kind:
    """Return the kind called `name`. Raises UnknownNameError."""
    kinds = known_kinds()
    if name not in kinds:
        raise UnknownNameError("experiment", name, list(kinds))
    return kinds[name]
