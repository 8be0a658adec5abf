"""What the options of a command are, told without importing what parses them: that takes longer than a load's start.

    Connections = Annotated[int | None, Option("-c", "--connections", help="…")]

says what typer's own would say; `typed` hands it to typer, and `_quick` reads it by itself.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, cast, get_args, get_origin


class Option:
    """Named `--like-its-parameter`, or as given: `-c`, `--keepalive/--no-keepalive`."""

    # Named as typer names them.
    def __init__(self, *names: str, help: str | None = None, min: int | None = None) -> None:
        self.names, self.help, self.min = names, help, min


class Argument:
    """Told by its place."""

    def __init__(self, *, help: str | None = None) -> None:
        self.help = help


def parted(annotation: object) -> tuple[Any, Option | Argument]:
    """Return the type of a parameter, and what is declared of it. Raises TypeError where nothing is."""
    if get_origin(annotation) is not Annotated:
        raise TypeError(f"{annotation} does not say what option it is")
    kind, declared = get_args(annotation)
    if not isinstance(declared, Option | Argument):
        raise TypeError(f"{declared} is neither Option nor Argument")
    return kind, declared


def typed(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command as typer wants it."""
    import typer  # noqa: PLC0415 - see the module

    def ours(annotation: object) -> object:
        kind, declared = parted(annotation)
        if isinstance(declared, Argument):
            told: object = typer.Argument(help=declared.help)
        else:
            told = typer.Option(*declared.names, help=declared.help, min=declared.min)
        return cast(Any, Annotated)[kind, told]

    @wraps(command)
    def run(**given: object) -> None:
        command(**given)

    signature = inspect.signature(command)
    parameters = [
        parameter.replace(annotation=ours(parameter.annotation))
        for parameter in signature.parameters.values()
    ]
    run.__annotations__ = {one.name: one.annotation for one in parameters} | {"return": None}
    # What `inspect.signature` looks for first.
    vars(run)["__signature__"] = signature.replace(parameters=parameters)
    return run
