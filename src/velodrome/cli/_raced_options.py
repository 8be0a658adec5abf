"""The options that say what each server carries, of `velodrome compare` and `velodrome diff`."""

from typing import Annotated

import typer

Connections = Annotated[int, typer.Option("-c", "--connections", min=1, help="Of the closed loop.")]
Rate = Annotated[float | None, typer.Option(help="Requests a second of an open loop beside it.")]
Length = Annotated[str, typer.Option("-z", "--duration", help="Of each measured span.")]
Between = Annotated[str, typer.Option("--link", help="Network between: rtt=160ms,rate=100mbit,loss=1%.")]
