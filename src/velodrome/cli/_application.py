"""The typer application: commands are imported when they are used, and help shows options in groups.

Only what typer itself needs is imported at the top: `velodrome --help` waits for nothing else.
"""

import importlib
from types import MethodType
from typing import Any

import typer
import typer.core

ABOUT = "Race Python network services under controlled conditions and learn which server to deploy."
COMMANDS = {
    "compare": ("compare", "Serve your app on every stack that can, and rank them."),
    "tune": ("tune", "Find the best stack and settings for an app."),
    "capacity": ("capacity", "Find the highest rate at which one stack meets an SLO."),
    "doctor": ("doctor", "Prove what is wrong with an app on a server."),
    "diff": ("diff", "Show what became worse or better between two runs or revisions."),
    "load": ("load", "Load a URL and report latency and throughput."),
    "run": ("run", "Race the stacks of a study, or of a group of studies."),
    "judge": ("judge", "Judge stored results again and write their reports."),
    "agent": ("cluster", "Carry loads on this machine for commands on others."),
    "cluster": ("cluster", "List the agents of a coordinator, start one, make certificates."),
    "requests": ("requests", "Write the requests of an access log or OpenAPI document to a file."),
    "upstream": ("upstream", "Simulate a third-party service."),
    "stacks": ("lists", "List the stacks, or show one."),
    "recipes": ("lists", "List the recipes, or show one."),
    "studies": ("lists", "List the studies that ship."),
    "drivers": ("lists", "List the load generators."),
    "cache": ("cache", "Show, prune or verify what is kept between runs."),
    "version": ("version", "Print the version; with --json also facts on this machine."),
}
"""By name: the module of this package that registers it, and a line for the help."""


class WrappedError(Exception):
    """Wraps its cause, to pass typer, which ends by itself with 1 whatever breaks a pipe or lacks input."""


class Commands(typer.core.TyperGroup):
    """The commands by name, each imported when it is used."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return their names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command."""
        return command(cmd_name) if cmd_name in COMMANDS else None

    def get_help_option(self, ctx: Any) -> Any:
        """Return `--help`."""
        return _not_given(super().get_help_option(ctx))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])

    def invoke(self, ctx: Any) -> Any:
        """Run the command, and wrap the errors for which typer would exit with 1."""
        try:
            return super().invoke(ctx)
        except (OSError, EOFError, KeyboardInterrupt) as error:
            raise WrappedError from error


def command(name: str) -> Any:
    """Return a command; its options are shown in groups."""
    module, _ = COMMANDS[name]
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    importlib.import_module(f"velodrome.cli.{module}").register(app)
    app.callback()(_nothing)  # or a single command would lose its name
    found = typer.main.get_command(app)
    assert isinstance(found, typer.core.TyperGroup)
    return group_options(found.commands[name])


def group_options(command: Any) -> Any:
    """Have the help of a command, and of those below it, show its options in groups."""
    command.format_options = MethodType(_format_options, command)
    command.get_help_option = MethodType(_help_option, command)
    for below in getattr(command, "commands", {}).values():
        group_options(below)
    return command


def _help_option(self: Any, ctx: Any) -> Any:
    return _not_given(type(self).get_help_option(self, ctx))


def _not_given(help_option: Any) -> Any:
    """Have `--help` be False where it is not given: typer imports pydantic to find out what None is."""
    if help_option is not None:
        help_option.default = False
    return help_option


def _format_options(self: Any, ctx: Any, formatter: Any) -> None:
    groups: dict[str, list[tuple[str, str]]] = {}
    for parameter in self.get_params(ctx):
        record = parameter.get_help_record(ctx)
        if record is not None:
            is_argument = parameter.param_type_name == "argument"
            panel = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or "Options"
            groups.setdefault(panel, []).append(record)
    # Those that every command has, --help among them, stand last.
    for panel in sorted(groups, key=lambda group: (group != "Arguments", group == "Options")):
        with formatter.section(panel):
            formatter.write_dl(groups[panel])
    if hasattr(self, "format_commands"):
        self.format_commands(ctx, formatter)


def _nothing() -> None:
    pass


def application() -> typer.Typer:
    """Return the command line."""
    app = typer.Typer(
        name="velodrome",
        cls=Commands,
        help=ABOUT,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help"]},
    )

    @app.callback(invoke_without_command=True)
    def root(
        show_version: bool = typer.Option(
            False, "--version", is_eager=True, help="Print the version and exit."
        ),
    ) -> None:
        if show_version:
            from velodrome.cli.main import print_version  # noqa: PLC0415 - nothing else needs it

            print_version()
            raise typer.Exit

    return app
