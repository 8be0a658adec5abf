"""Which options a command line gives: what says nothing to what is asked for is refused, not passed over."""

from collections.abc import Collection

import typer


def given(context: typer.Context, names: Collection[str]) -> tuple[str, ...]:
    """Return the options of the parameters called `names` that the command line gives, as they are typed."""
    found = []
    for parameter in context.command.params:
        if parameter.name in names:
            source = context.get_parameter_source(parameter.name)
            if source is not None and source.name == "COMMANDLINE":
                found.append(max(parameter.opts, key=len))
    return tuple(found)
