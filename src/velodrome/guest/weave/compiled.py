"""From lines of source to a function, once, at the start of a server process."""

from __future__ import annotations

import itertools
import linecache
from typing import Any, Dict, Sequence

_number = itertools.count(1)


def compiled(name: str, lines: Sequence[str], names: Dict[str, Any], title: str) -> Any:
    """Return what `lines` define as `name`; `names` become its globals.

    Tracebacks and profilers show the lines, under the file name `<velodrome title n>`.
    """
    source = "\n".join(lines) + "\n"
    filename = "<velodrome %s %d>" % (title, next(_number))
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    names["__name__"] = "velodrome.guest.handler"
    exec(compile(source, filename, "exec", dont_inherit=True), names)  # noqa: S102 - our own lines, see steps.py
    return names[name]
