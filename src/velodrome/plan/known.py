"""What a study file may name: stacks, recipes, load generators, kinds of experiment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack
from velodrome.model.claim import Setting


@dataclass(frozen=True)
class Known:
    """All that is installed, by name; a study that names anything else is wrong before anything is run."""

    stacks: Mapping[str, Stack]
    recipes: Mapping[str, Recipe]
    drivers: Sequence[str] = ("velodrome",)
    experiments: Mapping[str, Mapping[str, Setting]] = field(default_factory=dict)
    """Kind to its settings with their defaults."""
