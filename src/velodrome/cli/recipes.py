"""`velodrome recipes`: the endpoints that ship, step by step."""

import sys
from typing import Annotated

import typer

from velodrome.guest import catalog, plugins
from velodrome.model.errors import UnknownNameError
from velodrome.report import listing


def show_one(name: Annotated[str, typer.Argument(help="As `velodrome recipes` lists it.")]) -> None:
    """Show one recipe: its steps and what a right answer is."""
    try:
        listing.recipe(catalog.recipe(name), sys.stdout)
    except plugins.NoSuchNameError as error:
        raise UnknownNameError("recipe", name, error.known) from error


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    recipes = typer.Typer(no_args_is_help=False, rich_markup_mode=None)

    @recipes.callback(invoke_without_command=True)
    def default(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            listing.recipes(catalog.recipes().values(), sys.stdout)

    recipes.command("show")(show_one)
    app.add_typer(recipes, name="recipes", help="List the endpoints that ship.")
