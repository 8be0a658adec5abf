"""One cell of a study."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import KnobValue, Stack
from velodrome.model.app import App
from velodrome.model.load import Limits, Link, Load


@dataclass(frozen=True)
class Contestant:
    """A stack with its knobs set: what a study races."""

    stack: str
    knobs: Mapping[str, KnobValue] = field(default_factory=dict)
    """Only the knobs that differ from the stack's defaults."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Versions instead of those the stack and its interface pin: package to version."""
    python: str = ""
    """Interpreter: a path or a version; empty: the interpreter the study runs on."""
    name: str = ""
    """What the study calls it; empty: made of the rest."""

    @property
    def label(self) -> str:
        """Unique within a study and typed after `--only`: `gunicorn-gevent[workers=2]`, `tornado@3.7+tornado=5.1.1`."""
        if self.name:
            return self.name
        knobs = ",".join(f"{knob}={value}" for knob, value in sorted(self.knobs.items()))
        packages = "".join(f"+{package}={version}" for package, version in sorted(self.packages.items()))
        python = f"@{self.python}" if self.python else ""
        return self.stack + (f"[{knobs}]" if knobs else "") + python + packages

    def called(self, stack: Stack | None) -> str:
        """Return how it is read in a sentence: `gunicorn · gevent ×2, 4 threads`. None: a stack that is not known."""
        title = stack.title if stack else self.stack
        workers = f" ×{self.knobs['workers']}" if "workers" in self.knobs else ""
        rest = []
        for knob, value in sorted(self.knobs.items()):
            if isinstance(value, int):
                rest += [f"{value} {knob}"] if knob != "workers" else []
            elif stack and (usual := f" · {stack.knobs.get(knob)}") in title:
                # A title that names the usual choice names the other choice in its place.
                title = title.replace(usual, f" · {value}")
            else:
                rest.append(value)
        versions = [f"Python {self.python}"] if self.python else []
        versions += [f"{package} {version}" for package, version in sorted(self.packages.items())]
        return ", ".join([f"{title}{workers}", *rest, *versions])


@dataclass(frozen=True)
class Trial:
    """One measurement to be made; everything needed to make it again is in here."""

    study: str
    question: str
    recipe: Recipe
    contestant: Contestant
    load: Load
    limits: Limits
    block: int
    """Number of the repeat, from 0. All trials of a block run close together and are compared with each other."""
    python: str = ""
    """Interpreter of all the race's servers (`--python`): a path or a version; empty: the interpreter velodrome runs
    on."""
    link: Link | None = None
    """The network between generator and server; None: loopback."""
    app: App | None = None
    """What is served in place of the recipe, which then has no steps; None: the recipe."""
    part: str = ""
    """What of the question it belongs to, where it is no part of the race itself and is never ranked: `workers`."""

    @property
    def interpreter(self) -> str:
        """The interpreter this server runs on: the contestant's own, else the race's; empty: velodrome's."""
        return self.contestant.python or self.python

    @property
    def cell(self) -> str:
        """`question/contestant`, as `--only` takes it."""
        return f"{self.question}/{self.contestant.label}"

    @property
    def label(self) -> str:
        """The label a verdict knows the contestant by: with its interpreter where the study sets it."""
        if self.python and not self.contestant.python:
            return f"{self.contestant.label}@{self.python}"
        return self.contestant.label

    @property
    def key(self) -> str:
        """Names this trial within its study: `question/contestant/load/block`, and its part where it has any."""
        part = f"/{self.part}" if self.part else ""
        return f"{self.question}/{self.label}/{self.load.label}/{self.block}{part}"


@dataclass(frozen=True)
class Session:
    """Trials that one start of one server carries, in this order: they differ in nothing but their load."""

    trials: tuple[Trial, ...]
