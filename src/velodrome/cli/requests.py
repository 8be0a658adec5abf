"""`velodrome requests`: show what would be asked, as a file of requests to look at, to edit and to ask."""

import sys

import typer

from velodrome.cli import _app_options as app_options
from velodrome.cli import _app_options as options
from velodrome.cli import _app_options as trusting
from velodrome.model import secrets
from velodrome.model.app import known, withheld
from velodrome.model.errors import NoSourceError
from velodrome.plan.requests import file as written
from velodrome.plan.requests import lines as headers
from velodrome.plan.requests import sources
from velodrome.report.typeset import LINES, visible


def command(
    access_log: options.AccessLog = None,
    openapi: options.OpenApi = None,
    file: options.File = None,
    methods: options.Methods = "",
    trust: trusting.TrustGiven = False,
    header: app_options.Header = None,
    header_file: app_options.HeaderFile = None,
    secret: app_options.Secret = None,
) -> None:
    """Print the requests of an access log or an OpenAPI document as a file for --requests.

    Secrets are left out; --header gives those of headers again where the file is asked, others are put in by hand.
    """
    if access_log is None and openapi is None and file is None:
        raise NoSourceError("velodrome requests --access-log access.log > requests.toml")
    lines = [line for path in header_file or () for line in headers.lines_of(path)]
    given = headers.read_headers([*lines, *(header or ())])
    names = [name for name, _ in given]
    found = sources.of(
        file=file,
        access_log=access_log,
        openapi=openapi,
        methods=options.methods(methods),
        see=trusting.trust(trust).see,
    )
    asked = headers.with_headers(found.requests, given)
    known(asked, names)
    told = [secrets.mask(sentence) for sentence in found.told]
    if not sys.stdout.isatty():
        for sentence in told:
            print(visible(sentence), file=sys.stderr)
    print(visible(written.file_text([withheld(one, names) for one in asked], told), LINES), end="")


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("requests")(command)
