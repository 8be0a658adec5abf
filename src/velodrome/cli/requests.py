"""`velodrome requests`: show what would be requested, as a file to look at, to edit and to use."""

import sys

import typer

from velodrome.cli import _app_options as apps


def command(
    access_log: apps.AccessLog = None,
    openapi: apps.OpenApi = None,
    file: apps.File = None,
    methods: apps.Methods = "",
    trust: apps.TrustGiven = False,
    header: apps.Header = None,
    header_file: apps.HeaderFile = None,
    secret: apps.Secret = None,
) -> None:
    """Print the requests of an access log or an OpenAPI document as a file for --requests.

    Secrets are left out. Give those in headers by --header when the file is used; enter others by hand.
    """
    from velodrome.model import secrets  # noqa: PLC0415
    from velodrome.model.app import register_secrets, withheld  # noqa: PLC0415
    from velodrome.model.errors import NoSourceError  # noqa: PLC0415
    from velodrome.plan.requests import file as written  # noqa: PLC0415
    from velodrome.plan.requests import lines as headers  # noqa: PLC0415
    from velodrome.plan.requests import sources  # noqa: PLC0415
    from velodrome.report.typeset import LINES, visible  # noqa: PLC0415

    if access_log is None and openapi is None and file is None:
        raise NoSourceError("velodrome requests --access-log access.log > requests.toml")
    lines = [line for path in header_file or () for line in headers.lines_of(path)]
    given = headers.read_headers([*lines, *(header or ())])
    names = [name for name, _ in given]
    found = sources.of(
        file=file,
        access_log=access_log,
        openapi=openapi,
        methods=apps.methods(methods),
        see=apps.trust(trust).see,
    )
    requests = headers.with_headers(found.requests, given)
    register_secrets(requests, names)
    comments = [secrets.mask(sentence) for sentence in found.told]
    if not sys.stdout.isatty():
        for sentence in comments:
            print(visible(sentence), file=sys.stderr)
    print(
        visible(written.file_text([withheld(request, names) for request in requests], comments), LINES),
        end="",
    )


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("requests")(command)
