"""What `velodrome capacity` and `velodrome tune` serve: an app of the user's own, or a recipe in its place."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import typer

from velodrome.cli._app_options import Given
from velodrome.guest import catalog
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack
from velodrome.model.app import App
from velodrome.model.errors import NeedlessOptionError, UnknownNameError, UsageError
from velodrome.model.load import Limits, Link
from velodrome.model.trial import Contestant, Trial
from velodrome.report.typeset import visible
from velodrome.run.environments import guest_tree
from velodrome.run.lab import Lab
from velodrome.track import apps, bench, unread_settings

AppName = Annotated[
    str, typer.Argument(help="module:attribute, module:factory, or a Django settings module.")
]
RecipeName = Annotated[
    str, typer.Option("--recipe", help="A recipe in the place of an app (`velodrome recipes`).")
]

OF_APPS = frozenset(
    {
        *("request", "requests", "access_log", "openapi", "methods", "trust", "header", "header_file"),
        *("cwd", "env", "env_file", "secret", "interface", "upstream", "proto", "setup", "teardown"),
        "allow_sdist",
    }
)
"""Parameters of commands that say nothing to a recipe."""


@dataclass(frozen=True)
class Served:
    """What is served, and where it can be."""

    recipe: Recipe
    app: App | None
    lab: Lab
    python: str = ""
    """Interpreter of a recipe's servers; an app has its own."""

    @property
    def label(self) -> str:
        """As a title says it."""
        return f"{self.recipe.name}: {self.recipe.about}"

    def trial(self, study: str, contestant: Contestant, limits: Limits, link: Link | None = None) -> Trial:
        """Return what is measured; its load is set each time."""
        return bench.trial_of(
            study, self.recipe, contestant, limits, app=self.app, python=self.python, link=link
        )


@dataclass(frozen=True)
class Choice:
    """What the command line says is served."""

    app: str
    recipe: str
    given: Given
    of_apps: tuple[str, ...] = ()
    """Options that it gives and that are of apps alone."""


@contextmanager
def served(choice: Choice, extra: tuple[str, ...] = ()) -> Iterator[Served]:
    """Look at the app, run its commands around, and yield it; or yield the recipe.

    `extra` are paths of stacks of the user's own. Raises UsageError for all that is wrong with it.
    """
    if bool(choice.app) == bool(choice.recipe):
        raise UsageError(
            "give an app (shop.wsgi:application), or with --recipe one of those that ship (velodrome recipes)"
        )
    given = choice.given
    if choice.recipe:
        if choice.of_apps:
            raise NeedlessOptionError(choice.of_apps, "a recipe says itself what is asked and what it needs")
        with apps.served_as(given.user, "", tell):
            lab = Lab(catalog.stacks(extra), guest_tree.export(extra), extra=extra)
            yield Served(_recipe(choice.recipe), None, lab, given.python)
        return
    asked = given.asked(choice.app)
    with apps.commands_around(asked, tell):
        app = apps.look(asked)
        yield Served(app.recipe, app, apps.lab_for(asked, extra))


def tell_unread(found: Sequence[App | None], stacks: Sequence[Stack]) -> None:
    """Say on standard error which settings of the user's own do not act while these stacks are compared."""
    every = (unread_settings.told(one, stacks) for one in found if one is not None)
    for sentence in dict.fromkeys(filter(None, every)):
        tell(sentence)


def tell(sentence: str) -> None:
    """Say on standard error what goes on."""
    for line in sentence.splitlines():
        print(visible(line), file=sys.stderr, flush=True)


def _recipe(name: str) -> Recipe:
    known = catalog.recipes()
    if name not in known:
        raise UnknownNameError("recipe", name, tuple(known))
    return known[name]
