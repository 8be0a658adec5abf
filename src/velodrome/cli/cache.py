"""`velodrome cache`: what is kept between runs, how large, when last used and for what; and how it goes."""

import sys
import time
from typing import Annotated

import typer

from velodrome.cli import _server_options as serving
from velodrome.cli._stderr import FAILED

OlderThan = Annotated[
    str,
    typer.Option(
        "--older-than", help="Remove what no run has used for this long (30d unless --to-size is given)."
    ),
]
ToSize = Annotated[
    str, typer.Option("--to-size", help="Remove what was used longest ago until this much is left: 2GB.")
]


def show(as_json: bool) -> None:
    """Show what velodrome keeps between runs: environments, overlays, copies, bytecode; size, last use, purpose."""
    from velodrome.report import listing  # noqa: PLC0415
    from velodrome.run import cache  # noqa: PLC0415

    stock, folder = cache.inventory(), str(cache.folder(""))
    print(
        listing.cache_document(stock, folder)
        if as_json
        else "\n".join(listing.cache_lines(stock, folder, time.time()))
    )


def prune(older_than: OlderThan = "", to_size: ToSize = "") -> None:
    """Remove what was not used for long. It is made again when needed; what is in use stays."""
    from velodrome.model.amounts import memory_bytes  # noqa: PLC0415
    from velodrome.model.errors import BadOptionError  # noqa: PLC0415
    from velodrome.report import listing  # noqa: PLC0415
    from velodrome.run import cache  # noqa: PLC0415

    try:
        to_bytes = memory_bytes(to_size) if to_size else None
    except ValueError as error:
        raise BadOptionError("--to-size", to_size, str(error)) from error
    older_than_s = (
        None if to_size and not older_than else serving.seconds("--older-than", older_than or "30d")
    )
    print("\n".join(listing.removed_lines(cache.prune(older_than_s, to_bytes))))


def verify() -> None:
    """Compare every file kept with its hash; exit with code 1 if one differs."""
    from velodrome.report import listing  # noqa: PLC0415
    from velodrome.run.environments import guest_tree  # noqa: PLC0415

    found = list(guest_tree.verify_trees())
    damages = [damage for _, damage in found if damage is not None]
    print("\n".join(listing.verified_lines(len(found), damages)))
    if damages:
        sys.exit(FAILED)


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    kept = typer.Typer(no_args_is_help=False, rich_markup_mode=None)

    @kept.callback(invoke_without_command=True)
    def default(context: typer.Context, as_json: serving.AsJson = False) -> None:
        if context.invoked_subcommand is None:
            show(as_json)

    kept.command("prune")(prune)
    kept.command("verify")(verify)
    app.add_typer(kept, name="cache", help=show.__doc__)
