"""The options that say what is asked of an app, in whichever form its user has it."""

from pathlib import Path
from typing import Annotated

import typer

from velodrome.model.errors import BadOptionError
from velodrome.plan.asked.methods import ALL, SAFE

File = Annotated[
    Path | None,
    typer.Option(
        "--requests", help="A file of requests, by weight, with checks on the answers (TOML, JSON)."
    ),
]
AccessLog = Annotated[
    Path | None,
    typer.Option(
        help="The mix of an access log: common, combined, nginx's, JSON lines; gzip; - is standard input."
    ),
]
OpenApi = Annotated[
    Path | None, typer.Option("--openapi", help="The operations of an OpenAPI document (JSON).")
]
Methods = Annotated[
    str, typer.Option(help=f"Those taken from a log or a document: GET,POST ({','.join(SAFE)}).")
]


def methods(text: str) -> tuple[str, ...]:
    """Return the methods named. Raises BadOptionError."""
    found = tuple(part.strip().upper() for part in text.split(",") if part.strip())
    for one in found:
        if one not in ALL:
            raise BadOptionError("--methods", text, f"'{one}' is no method; there are {', '.join(ALL)}")
    return found or SAFE
