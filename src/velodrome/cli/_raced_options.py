"""The options that say what each server carries, of `velodrome compare` and `velodrome diff`; some of `capacity`."""

from typing import Annotated

import typer

from velodrome.model.errors import BadOptionError
from velodrome.model.load import Link
from velodrome.plan import link_text

Connections = Annotated[int, typer.Option("-c", "--connections", min=1, help="Of the closed loop.")]
Rate = Annotated[float | None, typer.Option(help="Requests a second of an open loop beside it.")]
Length = Annotated[str, typer.Option("-z", "--duration", help="Of each measured span.")]
Between = Annotated[str, typer.Option("--link", help="Network between: rtt=160ms,rate=100mbit,loss=1%.")]


def between(text: str) -> Link | None:
    """Return the link of `--link`; None: it was not given. Raises BadOptionError."""
    try:
        return link_text.read(text) if text else None
    except ValueError as error:
        raise BadOptionError("--link", text, str(error)) from error
