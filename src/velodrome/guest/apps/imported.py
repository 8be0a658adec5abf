"""Which files this process has imported: whether an app comes from the source that its user means."""

from __future__ import annotations

import os
import sys
import sysconfig
from types import ModuleType
from typing import Iterator, List, Sequence

from velodrome.guest.apps import surroundings

MOST = 1000
"""Files told. One that is at the wrong place is enough."""
INSTALLED = ("stdlib", "platstdlib", "purelib", "platlib")


def origin(path: str) -> str:
    """Return the file, or the folder, of the package that `module:attribute` begins with; empty: it has none."""
    module = sys.modules.get(path.partition(":")[0].partition(".")[0])
    return next(_places(module), "") if module is not None else ""


def within(folders: Sequence[str]) -> List[str]:
    """Return the files in these folders that were imported, but for what is installed there, and velodrome's own."""
    if not folders:
        return []
    roots = [os.path.join(os.path.realpath(one), "") for one in folders]
    installed = [os.path.join(os.path.realpath(one), "") for one in _installed()]
    found = set()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("velodrome", "__main__") or not isinstance(module, ModuleType):
            continue
        for place in _places(module):
            if _below(place, roots) and not _below(place, installed):
                found.add(place)
    return sorted(found)[:MOST]


def _places(module: ModuleType) -> Iterator[str]:
    """Yield the file of a module; of a package without one its folders."""
    file = getattr(module, "__file__", None)
    if isinstance(file, str):
        yield os.path.realpath(file)
        return
    try:
        folders = [str(one) for one in getattr(module, "__path__", ())]
    except Exception:  # computed by whoever made it
        return
    for one in folders:
        if os.path.isdir(one):  # finders of editable installations put a mark there
            yield os.path.realpath(one)


def _installed() -> List[str]:
    """Return where an interpreter has its library and what was installed for it."""
    known = sysconfig.get_paths()
    return [*surroundings.folders(), *(known[name] for name in INSTALLED if name in known)]


def _below(place: str, roots: Sequence[str]) -> bool:
    return any(place.startswith(root) for root in roots)
