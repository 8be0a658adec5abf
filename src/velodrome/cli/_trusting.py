"""The option `--trust`, and the question about what a file names that is not allowed yet."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from velodrome.model.files import Named
from velodrome.report.typeset import visible
from velodrome.track.trusting import Trust

HELP = "Allow what a study or a file of requests names: executables, packages, files that are not beside it."
Given = Annotated[bool, typer.Option("--trust", help=HELP)]


def trust(given: bool) -> Trust:
    """Return what decides: by the option, by what was allowed before or, on a terminal, by a question."""
    # Either may be closed, and is None then.
    on_a_terminal = all(one is not None and one.isatty() for one in (sys.stdin, sys.stderr))
    return Trust(given=given, ask=_asked if on_a_terminal else None, say=_say)


def _asked(path: str, named: Sequence[Named]) -> bool:
    """Ask on the terminal; what is not a yes is a no."""
    _say(f"{path} names what you have not allowed yet:")
    for one in named:
        _say(f"  {one.sentence}")
    print("Allow it, now and until one of these changes? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _say(sentence: str) -> None:
    print(visible(sentence), file=sys.stderr, flush=True)
