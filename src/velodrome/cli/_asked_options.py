"""The options that say what is asked of an app, in whichever form its user has it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from velodrome.cli import _trusting as trusting
from velodrome.model import secrets
from velodrome.model.app import known
from velodrome.model.errors import BadOptionError
from velodrome.plan.asked import asking
from velodrome.plan.asked.asking import Asking
from velodrome.plan.asked.methods import ALL, SAFE
from velodrome.report.typeset import visible

Lines = Annotated[
    list[str] | None,
    typer.Option(
        "--request", help="'GET /cart?id=7', 'POST /orders {\"id\": 1} -> 201'; repeatable (GET /)."
    ),
]
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
    Path | None, typer.Option("--openapi", help="The operations of an OpenAPI document (JSON, YAML).")
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


def mix(
    lines: Sequence[str] | None,
    file: Path | None,
    access_log: Path | None,
    openapi: Path | None,
    named: str,
    trusted: bool,
) -> Asking:
    """Return what the options of a command say together, and tell on standard error what is to be told of it.

    `named` are the methods, `trusted` whether the file may name files that are not beside it. Raises TwoSourcesError
    where they contradict each other, UntrustedError, and UsageError for files.
    """
    for line in lines or ():
        secrets.of_text(line)  # before one of them is quoted as wrong
    see = trusting.trust(trusted).see
    found = asking.of(lines or (), file, access_log, openapi, methods(named), see=see)
    known(found.requests)
    for sentence in found.told:
        print(visible(secrets.mask(sentence)), file=sys.stderr, flush=True)
    return found
