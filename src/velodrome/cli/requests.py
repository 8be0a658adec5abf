"""`velodrome requests`: show what would be asked, as a file of requests to look at, to edit and to ask."""

import sys

import typer

from velodrome.cli import _app_options as app_options
from velodrome.cli import _asked_options as options
from velodrome.cli import _trusting as trusting
from velodrome.model.errors import NoSourceError
from velodrome.model.withheld import withheld
from velodrome.plan.asked import asking, headers, written


def command(
    access_log: options.AccessLog = None,
    openapi: options.OpenApi = None,
    file: options.File = None,
    methods: options.Methods = "",
    trust: trusting.Given = False,
    header: app_options.Header = None,
) -> None:
    """Print the requests of an access log or an OpenAPI document as a file for --requests.

    Values of headers that may be secrets are left out; --header gives them again where the file is asked.
    """
    if access_log is None and openapi is None and file is None:
        raise NoSourceError("velodrome requests --access-log access.log > requests.toml")
    given = headers.read(header or ())
    names = [name for name, _ in given]
    found = asking.of(
        file=file,
        access_log=access_log,
        openapi=openapi,
        methods=options.methods(methods),
        see=trusting.trust(trust).see,
    )
    if not sys.stdout.isatty():
        for sentence in found.told:
            print(sentence, file=sys.stderr)
    shown = [withheld(one, names) for one in headers.added(found.requests, given)]
    print(written.text(shown, found.told), end="")


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("requests")(command)
