"""What a file names that goes beyond measuring: executables, packages, files outside its folder.

Whoever writes such a file decides what is run, installed and read on the machine of whoever runs it. So all of it can
be listed before any of it is touched:

    of_study(study)     Named(Deed.EXECUTES, "./x.sh", "contestant old"), Named(Deed.INSTALLS, "tornado==5.1.1", …)
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from velodrome.model.errors import UntrustedError
from velodrome.model.files import Deed, Named
from velodrome.model.study import Study

_VERSION = re.compile(r"(?:(?:cpython|pypy|graalpy)[-@]?)?[0-9]+(?:\.[0-9]+){0,2}t?")
"""Of an interpreter; all else is looked for as a file."""


See = Callable[[str, Sequence[Named]], None]
"""Decides on what the file at a path names, before any of it is touched. Raises UntrustedError."""


def refuse(path: str, named: Sequence[Named]) -> None:
    """Let nothing be named. Raises UntrustedError."""
    if named:
        raise UntrustedError(path, [one.sentence for one in named])


def of_study(study: Study) -> tuple[Named, ...]:
    """Return what a study names, each thing once, in its order."""
    found: dict[tuple[Deed, str], Named] = {}
    for one in _all_of(study):
        found.setdefault((one.deed, one.what), one)
    return tuple(found.values())


def _all_of(study: Study) -> Iterator[Named]:
    for one in study.contestants:
        yield from _interpreter(one.python or "", f"contestant {one.label}")
        yield from _packages(one.packages, f"contestant {one.label}")
    for experiment in study.experiments:
        place = f"experiment {experiment.name}"
        yield from _interpreter(str(experiment.settings.get("python", "")), place)
        lines = experiment.settings.get("packages", ())
        pairs = (line.partition("=") for line in (lines if isinstance(lines, tuple) else ()))
        yield from _packages({name: version for name, _, version in pairs}, place)


def _interpreter(python: str, place: str) -> Iterator[Named]:
    if python and not _VERSION.fullmatch(python):
        yield Named(Deed.EXECUTES, python, place)


def _packages(packages: Mapping[str, str], place: str) -> Iterator[Named]:
    if packages:
        lines = sorted(f"{name}=={version}" for name, version in packages.items())
        yield Named(Deed.INSTALLS, " ".join(lines), place)
