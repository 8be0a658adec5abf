"""Options of a command, declared without importing what parses them, and read without it where nothing is wrong.

    Connections = Annotated[int | None, Option("-c", "--connections", help="…")]

says what typer's own would say: `typer_command` hands it to typer, which takes longer to import than a load to start,
and `read` reads a command line by itself. Whatever is not plainly right it leaves to typer, which says what is wrong.
`Annotated` is typing's for the type checker alone, because typing takes as long to import as the engine to send.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Annotated, Any


else:

    class Annotated:
        """`Annotated[type, declaration]`."""

        def __class_getitem__(cls, declaration):
            return Declared(*declaration)


__all__ = ["Annotated", "Argument", "Declared", "Option", "parameters", "typer_command"]


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
    """Given by its position."""

    def __init__(self, *, help: str | None = None) -> None:
        self.help = help


class Declared:
    """A parameter: its type, and what is declared of it."""

    def __init__(self, kind: Any, declaration: Option | Argument) -> None:
        self.kind, self.declaration = kind, declaration


def parameters(command: Callable[..., None]) -> dict[str, Declared]:
    """Return the parameters of a command by name. Raises TypeError for a parameter that does not say what it is."""
    found = {}
    for name, annotation in command.__annotations__.items():
        if name == "return":
            continue
        if not isinstance(annotation, Declared):
            raise TypeError(f"{name}: {annotation} does not say what option it is")
        found[name] = annotation
    return found


def typer_command(
    command: Callable[..., None], groups: Mapping[str, Sequence[str]] | None = None
) -> Callable[..., None]:
    """Return a command as typer wants it; its help shows parameters of each group under the group's name."""
    import inspect  # noqa: PLC0415 - see the module
    import typing  # noqa: PLC0415
    from functools import wraps  # noqa: PLC0415

    import typer  # noqa: PLC0415

    of_group = {parameter: group for group, inside in (groups or {}).items() for parameter in inside}

    def ours(name: str) -> object:
        kind, declaration = declared[name].kind, declared[name].declaration
        if isinstance(declaration, Argument):
            return typing.Annotated[kind, typer.Argument(help=declaration.help)]
        if declaration.one_of:
            optional = kind is not str
            kind = typing.Literal[declaration.one_of]
            kind = kind | None if optional else kind
        option = typer.Option(
            *declaration.names,
            help=declaration.help,
            min=declaration.min,
            metavar=declaration.metavar,
            rich_help_panel=of_group.get(name),
        )
        return typing.Annotated[kind, option]

    @wraps(command)
    def run(**given: object) -> None:
        command(**given)

    signature = inspect.signature(command)
    declared = parameters(command)
    typed_parameters = [
        parameter.replace(annotation=ours(name)) for name, parameter in signature.parameters.items()
    ]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in typed_parameters} | {
        "return": None
    }
    # What `inspect.signature` looks for first.
    vars(run)["__signature__"] = signature.replace(parameters=typed_parameters)
    return run


class _Reader:
    """How the value of a parameter is read; `flag` is the value of an option that takes none."""

    def __init__(
        self,
        parameter: str,
        read: Callable[[str], object] = str,
        many: bool = False,
        flag: bool | None = None,
    ) -> None:
        self.parameter, self.read, self.many, self.flag = parameter, read, many, flag


def read(command: Callable[..., None], words: Sequence[str]) -> dict[str, Any] | None:
    """Return what to call the command with; None: ask typer."""
    try:
        return _read(*_readers(command), list(words))
    except ValueError:
        return None


def _read(argument: _Reader, options: Mapping[str, _Reader], rest: list[str]) -> dict[str, Any]:
    """Read all words. Raises ValueError for whatever is not plainly right."""
    given: dict[str, Any] = {}
    while rest:
        word = rest.pop(0)
        name, value = _split_option(word)
        reader = options.get(name) if word.startswith("-") else argument
        if reader is None or (reader.parameter in given and not reader.many):
            raise ValueError(word)
        if reader is argument:
            given[reader.parameter] = word
        elif reader.flag is not None:
            if value is not None:
                raise ValueError(word)
            given[reader.parameter] = reader.flag
        else:
            text = value if value is not None else rest.pop(0) if rest else "-"
            # A value like an option may be a value forgotten.
            if text.startswith("-"):
                raise ValueError(word)
            found = reader.read(text)
            given[reader.parameter] = [*given.get(reader.parameter, ()), found] if reader.many else found
    if argument.parameter not in given:
        raise ValueError("no argument")
    return given


def _split_option(word: str) -> tuple[str, str | None]:
    """Part `--rate=5` and `-c5`."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    return word[:2], word[2:] or None


def _readers(command: Callable[..., None]) -> tuple[_Reader, dict[str, _Reader]]:
    """Return how the command's argument is read, and its options by their names."""
    argument, options = None, {}
    for parameter, declared in parameters(command).items():
        declaration = declared.declaration
        if isinstance(declaration, Argument):
            argument = _Reader(parameter)
            continue
        usual = "--" + parameter.replace("_", "-")
        if declared.kind is bool:
            for name in declaration.names or (f"{usual}/{usual.replace('--', '--no-')}",):
                yes, _, no = name.partition("/")
                options[yes] = _Reader(parameter, flag=True)
                if no:
                    options[no] = _Reader(parameter, flag=False)
            continue
        options |= dict.fromkeys(
            declaration.names or (usual,), _reader(parameter, declared.kind, declaration)
        )
    if argument is None:
        raise TypeError(f"{command.__name__} has no argument")
    return argument, options


def _reader(parameter: str, kind: Any, declaration: Option) -> _Reader:
    """Return how a value of this type is read: `int | None`, `list[str] | None` and the like."""
    many = False
    while inner := getattr(kind, "__args__", None):
        many |= getattr(kind, "__origin__", None) is list
        kind = next(option for option in inner if option is not type(None))
    return _Reader(parameter, _one_of(kind, declaration), many)


def _one_of(kind: type, declaration: Option) -> Callable[[str], object]:
    def whole(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or int(text) < (declaration.min or 0):
            raise ValueError(text)
        return int(text)

    def number(text: str) -> float:
        found = float(text)
        # Neither infinite nor none at all: of those the difference to themselves is none.
        if found - found != 0:
            raise ValueError(text)
        return found

    def named(text: str) -> str:
        if text not in declaration.one_of:
            raise ValueError(text)
        return text

    if declaration.one_of:
        return named
    readers: dict[type, Callable[[str], object]] = {int: whole, float: number, str: str}
    return readers[kind]
