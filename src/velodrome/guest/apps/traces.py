"""A traceback for whoever wrote the app: short, and it ends at their own line."""

from __future__ import annotations

import os
import traceback
from typing import Iterable, List

MOST_FRAMES = 4
"""Of the user's own, the last ones."""


def short(error: BaseException, folder: str) -> List[str]:
    """Return the lines of a traceback: frames of files in `folder` alone, then the error.

    Where none is, the last frame there is. `folder` is the one the app runs in.
    """
    told = traceback.TracebackException.from_exception(error)
    if isinstance(error, SyntaxError):
        return _lines(told.format_exception_only())
    every = [frame for frame in told.stack if not _is_machinery(frame.filename)]
    root = os.path.realpath(folder) + os.sep
    mine = [number for number, frame in enumerate(every) if _is_own(frame.filename, root)]
    # A module that cannot even be found has no frame at all.
    kept = [every[number] for number in mine[-MOST_FRAMES:]] or every[-1:]
    below = len(every) - 1 - mine[-1] if mine else 0
    lines = []
    for frame in kept:
        path = os.path.realpath(frame.filename)
        name = path[len(root) :] if path.startswith(root) else path
        lines.append("%s, line %s, in %s" % (name, frame.lineno, frame.name))
        if frame.line:
            lines.append("    " + frame.line)
    if below:
        lines.append("… and %d more in %s" % (below, _package(every[-1].filename)))
    return [*lines, *_lines(told.format_exception_only())]


def _lines(pieces: Iterable[str]) -> List[str]:
    return [line for piece in pieces for line in piece.rstrip().splitlines()]


def _is_own(filename: str, root: str) -> bool:
    path = os.path.realpath(filename)
    return path.startswith(root) and "site-packages" not in path[len(root) :]


def _is_machinery(filename: str) -> bool:
    """Return whether a frame is of what imports and looks, not of what is imported."""
    folder = os.path.dirname(os.path.abspath(__file__))
    return filename.startswith(("<frozen ", folder)) or filename.endswith("importlib/__init__.py")


def _package(filename: str) -> str:
    """Return whose file it is: the name behind `site-packages`, else that of the file."""
    _, found, rest = filename.replace(os.sep, "/").rpartition("-packages/")
    return rest.partition("/")[0] if found else os.path.basename(filename)
