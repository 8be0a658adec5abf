"""`velodrome stacks`: what can be raced here, what each is, and the command line that serves it."""

import shlex
import sys
from typing import Annotated

import typer

from velodrome.guest import catalog, plugins
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.judge.deploying import deployed
from velodrome.model.errors import BrokenPluginError, UnknownNameError
from velodrome.report import listing
from velodrome.run.environments import environment
from velodrome.usecases import terms

YOUR_APP = "yourmodule:app"
Extra = Annotated[
    list[str] | None, typer.Option("--stack", help="A stack of your own: ./mine.py; repeatable.")
]


def find(name: str, extra: list[str]) -> Stack:
    """Return the stack called `name`. Raises UnknownNameError."""
    try:
        return catalog.stack(name, extra)
    except plugins.NoSuchNameError as error:
        if error.error:
            raise BrokenPluginError("stack", name, error.error) from error
        raise UnknownNameError("stack", name, error.known) from error


def show_all(stack: Extra = None) -> None:
    """List every stack: what it is, whether it runs here and, if not, why and the cure."""
    extra = stack or []
    rows = [(found, environment.available(found)) for found in catalog.stacks(extra).values()]
    broken = [
        (entry.name, entry.origin, entry.error)
        for entry in plugins.entries(catalog.STACK, extra)
        if entry.error
    ]
    listing.stacks(rows, broken, sys.stdout)


def show_one(
    name: Annotated[str, typer.Argument(help="As `velodrome stacks` lists it.")],
    knob: Annotated[list[str] | None, typer.Argument(help="Settings: workers=4 loop=asyncio")] = None,
    command: Annotated[
        bool, typer.Option("--command", help="Only the command line, as it is to be deployed.")
    ] = False,
    stack: Extra = None,
) -> None:
    """Show one stack: its command line with the knobs given, and its environment."""
    found = find(name, stack or [])
    process = _process(found, knob or [])
    line = shlex.join(["python", *process.argv])
    variables = [f"{key}={shlex.quote(value)}" for key, value in process.env.items()]
    if command:
        print(" ".join([*variables, shlex.join(deployed(["python", *process.argv], found.server))]))
    else:
        listing.stack(
            found,
            catalog.requires(found),
            environment.available(found),
            " ".join([*variables, line]),
            sys.stdout,
        )


def _process(found: Stack, words: list[str]) -> Process:
    settings = found.settings(terms.of_words(found, words))
    return found.command(Launch("127.0.0.1", 8000, YOUR_APP, settings))


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    stacks = typer.Typer(no_args_is_help=False, rich_markup_mode=None)

    @stacks.callback(invoke_without_command=True)
    def default(context: typer.Context, stack: Extra = None) -> None:
        if context.invoked_subcommand is None:
            show_all(stack)

    stacks.command("show")(show_one)
    app.add_typer(stacks, name="stacks", help=show_all.__doc__)
