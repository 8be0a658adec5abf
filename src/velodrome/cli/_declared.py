"""What the options of a command are, told without importing what parses them: that takes longer than a load's start.

    Connections = Annotated[int | None, Option("-c", "--connections", help="…")]

says what typer's own would say; `typed` hands it to typer, and `_quick` reads it by itself. `Annotated` is typing's to
whoever checks types; here it is not, because typing takes as long to import as the engine to send.
"""

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Annotated, Any
else:

    class Annotated:
        """`Annotated[type, declaration]`."""

        def __class_getitem__(cls, told):
            return Declared(*told)


__all__ = ["Annotated", "Argument", "Declared", "Option", "parameters", "typed"]


class Option:
    """Named `--like-its-parameter`, or as given: `-c`, `--keepalive/--no-keepalive`.

    `one_of`: the texts it can be; `metavar`: what its value is called in the help where the type does not say it.
    """

    # Named as typer names them.
    def __init__(
        self,
        *names: str,
        help: str | None = None,
        min: int | None = None,
        one_of: tuple[str, ...] = (),
        metavar: str | None = None,
    ) -> None:
        self.names, self.help, self.min = names, help, min
        self.one_of, self.metavar = one_of, metavar


class Argument:
    """Told by its place."""

    def __init__(self, *, help: str | None = None) -> None:
        self.help = help


class Declared:
    """A parameter: its type, and what is declared of it."""

    def __init__(self, kind: "Any", told: Option | Argument) -> None:
        self.kind, self.told = kind, told


def parameters(command: "Callable[..., None]") -> dict[str, Declared]:
    """Return the parameters of a command by name. Raises TypeError where one does not say what it is."""
    found = {}
    for name, annotation in command.__annotations__.items():
        if name == "return":
            continue
        if not isinstance(annotation, Declared):
            raise TypeError(f"{name}: {annotation} does not say what option it is")
        found[name] = annotation
    return found


def typed(command: "Callable[..., None]") -> "Callable[..., None]":
    """Return a command as typer wants it."""
    import inspect  # noqa: PLC0415 - see the module
    import typing  # noqa: PLC0415
    from functools import wraps  # noqa: PLC0415

    import typer  # noqa: PLC0415

    def ours(declared: Declared) -> object:
        kind, told = declared.kind, declared.told
        if isinstance(told, Argument):
            return typing.Annotated[kind, typer.Argument(help=told.help)]
        if told.one_of:
            optional = kind is not str
            kind = typing.Literal[told.one_of]
            kind = kind | None if optional else kind
        option = typer.Option(*told.names, help=told.help, min=told.min, metavar=told.metavar)
        return typing.Annotated[kind, option]

    @wraps(command)
    def run(**given: object) -> None:
        command(**given)

    signature = inspect.signature(command)
    declared = parameters(command)
    told = [one.replace(annotation=ours(declared[name])) for name, one in signature.parameters.items()]
    run.__annotations__ = {one.name: one.annotation for one in told} | {"return": None}
    # What `inspect.signature` looks for first.
    vars(run)["__signature__"] = signature.replace(parameters=told)
    return run
