"""Finds the command asked for, runs it, and turns errors into one sentence and an exit code.

Exit codes: 0 fine, 1 a claim or threshold failed, 2 usage or configuration, 3 the lab itself could not run,
4 it cannot be told whether a threshold failed, 130 interrupted.
"""

import sys

import velodrome.cli
from velodrome.model.errors import VelodromeError

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer

ABOUT = "Race Python network services under controlled conditions and learn which server to deploy."


def _names() -> list[str]:
    import pkgutil  # noqa: PLC0415 - a load does without

    found = (module.name for module in pkgutil.iter_modules(velodrome.cli.__path__))
    return sorted(name for name in found if name != "main" and not name.startswith("_"))


def application(asked: str | None) -> "typer.Typer":
    """Return the command line with the command `asked` for, or with all of them.

    Only what is asked for is imported: `velodrome load` must not wait for what draws reports.
    """
    import importlib  # noqa: PLC0415 - see `_at_once`

    import typer  # noqa: PLC0415

    app = typer.Typer(
        name="velodrome",
        help=ABOUT,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )

    @app.callback(invoke_without_command=True)
    def root(
        show_version: bool = typer.Option(
            False, "--version", is_eager=True, help="Print the version and end."
        ),
    ) -> None:
        if show_version:
            # Takes longer than all else a load waits for.
            from importlib.metadata import version  # noqa: PLC0415

            typer.echo(f"velodrome {version('velodrome')}")
            raise typer.Exit

    names = _names()
    for name in [asked] if asked in names else names:
        register = importlib.import_module(f"velodrome.cli.{name}").register
        register(app)
    return app


def _at_once(arguments: "Sequence[str]") -> bool:
    """Run a load whose command line has nothing wrong with it; returns whether it had not.

    typer takes longer to import than all the rest of a load's start.
    """
    if arguments[:1] != ["load"]:
        return False
    from velodrome.cli import _quick, load  # noqa: PLC0415

    given = _quick.read(load.command, arguments[1:])
    if given is not None:
        load.command(**given)
    return given is not None


def main() -> None:
    """Run the command line; ends the process."""
    arguments = sys.argv[1:]
    asked = next((word for word in arguments if not word.startswith("-")), None)
    try:
        if _at_once(arguments):
            return
        application(asked)(prog_name="velodrome")
    except VelodromeError as error:
        from velodrome.report.typeset import LINES, visible  # noqa: PLC0415 - a load does without

        print(f"velodrome: {visible(str(error), LINES)}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        print("velodrome: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader went away (`velodrome stacks | head`); the interpreter must not complain at exit.
        sys.stdout = None
        sys.exit(141)
