"""A bounded experiment: a question that no load answers, such as «does this hang?»."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Fact = float | str | bool | None
Setting = float | int | str | bool | tuple[str, ...]


@dataclass(frozen=True)
class Experiment:
    """What to try, and how; the trying is a file in `run/experiments/` called like `kind`."""

    name: str
    """Within a study; claims name it."""
    kind: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """Only those that differ from the kind's defaults."""
    deadline_s: float | None = None
    """Instead of the kind's."""


@dataclass(frozen=True)
class Finding:
    """What an experiment came to; ending at its deadline is a fact like any other."""

    experiment: Experiment
    started_at: str
    """ISO 8601, UTC."""
    facts: Mapping[str, Fact] = field(default_factory=dict)
    """By name; units are in the names. None: could not be told."""
    sentence: str = ""
    """What was seen, for people."""
    failed: str = ""
    """Why it could not be tried at all, with the cure, or empty."""
    last_lines: tuple[str, ...] = ()
    """The end of what the programs under test printed; escape before showing."""
