"""What there is here: `velodrome stacks`, `recipes`, `studies` and `drivers`, and one of them in detail."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from velodrome.cli._server_options import of_server
from velodrome.cli.main import heavy

if TYPE_CHECKING:
    from velodrome.guest.stack import Process, Stack

YOUR_APP = "yourmodule:app"
Extra = Annotated[
    list[str] | None, of_server("--stack", help="Add a stack of your own: ./mine.py; repeatable.")
]


def stacks(stack: Extra = None) -> None:
    """List every stack: what it is, whether it runs here and, if not, why and the cure."""
    from velodrome.guest import catalog, plugins  # noqa: PLC0415
    from velodrome.report import listing  # noqa: PLC0415
    from velodrome.run.environments import environment  # noqa: PLC0415

    extra = stack or []
    rows = [(found, environment.available(found)) for found in catalog.stacks(extra).values()]
    broken = [
        (entry.name, entry.origin, entry.error)
        for entry in plugins.entries(catalog.STACK, extra)
        if entry.error
    ]
    listing.stacks(rows, broken, sys.stdout)


def show_stack(
    name: Annotated[str, typer.Argument(help="As `velodrome stacks` lists it.")],
    knob: Annotated[list[str] | None, typer.Argument(help="Settings: workers=4 loop=asyncio")] = None,
    command: Annotated[
        bool,
        typer.Option(
            "--command", help="Print only the command line to deploy, or the program where there is none."
        ),
    ] = False,
    stack: Extra = None,
) -> None:
    """Show one stack: its command line with the knobs given, and its environment."""
    import shlex  # noqa: PLC0415

    from velodrome.guest import catalog  # noqa: PLC0415
    from velodrome.guest.stack import Launch, Written  # noqa: PLC0415
    from velodrome.judge.deploying import without_race_options  # noqa: PLC0415
    from velodrome.report import listing  # noqa: PLC0415
    from velodrome.run.environments import environment  # noqa: PLC0415
    from velodrome.usecases import terms  # noqa: PLC0415

    found = _stack(name, stack or [])
    process = _process(found, knob or [])
    line = shlex.join(["python", *process.argv])
    variables = [f"{key}={shlex.quote(value)}" for key, value in process.env.items()]
    if command and found.script is not None:
        module, _, name = YOUR_APP.partition(":")
        launch = Launch("127.0.0.1", 8000, YOUR_APP, found.settings(terms.of_words(found, knob or [])))
        served = f"{name}(server)" if catalog.interface(found.interface).protocol == "grpc" else name
        print(found.script(launch, Written(f"from {module} import {name}", served)))
    elif command:
        print(
            " ".join([*variables, shlex.join(without_race_options(["python", *process.argv], found.server))])
        )
    else:
        listing.stack(
            found,
            catalog.requires(found),
            environment.available(found),
            " ".join([*variables, line]),
            sys.stdout,
        )


def _stack(name: str, extra: list[str]) -> "Stack":
    """Return the stack called `name`. Raises UnknownNameError."""
    from velodrome.guest import catalog, plugins  # noqa: PLC0415
    from velodrome.model.errors import BrokenPluginError, UnknownNameError  # noqa: PLC0415

    try:
        return catalog.stack(name, extra)
    except plugins.NoSuchNameError as error:
        if error.error:
            raise BrokenPluginError("stack", name, error.error) from error
        raise UnknownNameError("stack", name, error.known) from error


def _process(found: "Stack", words: list[str]) -> "Process":
    from velodrome.guest.stack import Launch  # noqa: PLC0415
    from velodrome.usecases import terms  # noqa: PLC0415

    settings = found.settings(terms.of_words(found, words))
    return found.command(Launch("127.0.0.1", 8000, YOUR_APP, settings))


def recipes() -> None:
    """List the endpoints that ship."""
    from velodrome.guest import catalog  # noqa: PLC0415
    from velodrome.report import listing  # noqa: PLC0415

    listing.recipes(catalog.recipes().values(), sys.stdout)


def show_recipe(name: Annotated[str, typer.Argument(help="As `velodrome recipes` lists it.")]) -> None:
    """Show one recipe: its steps and what a right response is."""
    from velodrome.guest import catalog, plugins  # noqa: PLC0415
    from velodrome.model.errors import UnknownNameError  # noqa: PLC0415
    from velodrome.report import listing  # noqa: PLC0415

    try:
        listing.recipe(catalog.recipe(name), sys.stdout)
    except plugins.NoSuchNameError as error:
        raise UnknownNameError("recipe", name, error.known) from error


def studies() -> None:
    """List the studies that ship, with what each asks and about how long it takes in full and quick form."""
    with heavy:
        from velodrome.guest import catalog  # noqa: PLC0415
        from velodrome.plan import matrix, study_file  # noqa: PLC0415
        from velodrome.report import listing  # noqa: PLC0415
        from velodrome.usecases.studies import list_known  # noqa: PLC0415

    there, stacks = list_known(), catalog.stacks()
    rows = []
    for name in study_file.shipped_studies():
        forms = [study_file.load_study(name, there, quick=form) for form in (False, True)]
        full, quick = (matrix.race_s(matrix.lay_out(form, stacks).sessions, stacks) for form in forms)
        rows.append((forms[0], full, quick))
    listing.studies(rows, list(study_file.groups()), sys.stdout)


def drivers() -> None:
    """List the load generators: what each carries, its version here or, if it is missing, the cure."""
    with heavy:
        from velodrome.report import listing  # noqa: PLC0415
        from velodrome.run.drivers import driver  # noqa: PLC0415

    rows = [(found.name, found.version, found.about, found.why_not) for found in driver.available_drivers()]
    listing.drivers(rows, sys.stdout)


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    of_stacks = typer.Typer(no_args_is_help=False, rich_markup_mode=None)

    @of_stacks.callback(invoke_without_command=True)
    def list_stacks(context: typer.Context, stack: Extra = None) -> None:
        if context.invoked_subcommand is None:
            stacks(stack)

    of_stacks.command("show")(show_stack)
    app.add_typer(of_stacks, name="stacks", help=stacks.__doc__)
    of_recipes = typer.Typer(no_args_is_help=False, rich_markup_mode=None)

    @of_recipes.callback(invoke_without_command=True)
    def list_recipes(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            recipes()

    of_recipes.command("show")(show_recipe)
    app.add_typer(of_recipes, name="recipes", help=recipes.__doc__)
    app.command("studies")(studies)
    app.command("drivers")(drivers)
