"""Requirements and their locks: exact packages with their hashes for every set that ships (`locks/*.txt`).

    .venv/bin/python tools/locks.py        renews them all; `make lock` does this too

A lock is for Python 3.11 and newer on any system (`uv pip compile --universal`). It names packages and
hashes, never where they come from. A study may set other versions than those that stacks pin:

with_versions(("tornado==6.5.2",), {"Tornado": "5.1.1"})   ->  ("tornado==5.1.1",)
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from velodrome.guest import catalog, client, plugins
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Stack
from velodrome.run.environments.installing import run_uv

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?[^;]*(;.*)?")


def with_versions(requires: Sequence[str], packages: Mapping[str, str]) -> tuple[str, ...]:
    """Return requirements in which each of `packages` has that version; a package they do not name is added.

    Names are compared as installers do: without regard to case, and with `-`, `_` and `.` alike (PEP 503).
    """
    left = {_normal(name): (name, version) for name, version in packages.items()}
    found = []
    for line in requires:
        match = _NAME.fullmatch(line)
        named = left.pop(_normal(match[1]), None) if match else None
        if match is None or named is None:
            found.append(line)
            continue
        marker = f" {match[3]}" if match[3] else ""
        found.append(f"{match[1]}{match[2] or ''}=={named[1]}{marker}")
    found += [f"{name}=={version}" for name, version in left.values()]
    return tuple(sorted(found))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(line: str) -> str:
    """Return the normalized name of the package that a requirement is about; empty for what is none."""
    match = _NAME.fullmatch(line)
    return _normal(match[1]) if match else ""


def unpinned(line: str) -> str:
    """Return a requirement for any version, its extras and markers kept."""
    match = _NAME.fullmatch(line)
    if match is None:
        return line
    return f"{match[1]}{match[2] or ''}{' ' + match[3] if match[3] else ''}"


FOLDER = Path(__file__).parent / "locks"
OLDEST = (3, 11)
"""The oldest Python the locks are resolved for; that of velodrome itself."""
_PINNED = re.compile(r"([a-z0-9][a-z0-9-]*)==([^ ;\\]+)")
_HASH = re.compile(r"\s+--hash=(sha256:[0-9a-f]{64})")


def path_of(requires: tuple[str, ...]) -> Path:
    """Return where the lock of a set of requirements is, whether it is there or not."""
    names = "+".join(re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0].lower() for line in requires)
    digest = hashlib.sha256("\n".join(requires).encode()).hexdigest()[:8]
    return FOLDER / f"{names[:80]}-{digest}.txt"


def covering(requires: tuple[str, ...], python: tuple[int, int]) -> Path | None:
    """Return the lock for a set of requirements on a Python, or None: it has to be resolved anew."""
    path = path_of(requires)
    return path if requires and python >= OLDEST and path.is_file() else None


@cache
def hashes() -> Mapping[tuple[str, str], tuple[str, ...]]:
    """Return the hashes of all files of every package and version that any lock which ships names."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for path in FOLDER.glob("*.txt"):
        package = ("", "")
        for line in path.read_text().splitlines():
            if match := _PINNED.match(line):
                package = (match[1], match[2])
            elif match := _HASH.match(line):
                found.setdefault(package, {})[match[1]] = None
    return {package: tuple(every) for package, every in found.items()}


def wanted(raced: Iterable[tuple[Stack, Recipe]] = ()) -> list[tuple[str, ...]]:
    """Return the distinct sets of requirements of what ships, sorted.

    That is the stacks, the clients that make databases ready, and the stacks that are `raced` on recipes.
    """
    shipped = [entry.thing for entry in plugins.shipped(catalog.STACK) if not entry.error]
    preparers = [tuple(sorted(entry.requires)) for entry in client.clients().values() if entry.prepare]
    stacks = [catalog.requires(stack) for stack in shipped]
    return sorted({*stacks, *preparers, *(catalog.requires(*pair) for pair in raced)} - {()})


def renew(sets: Iterable[tuple[str, ...]], folder: Path = FOLDER) -> list[str]:
    """Write the lock of each set, remove those nobody wants, and return uv's message where it failed."""
    every = list(sets)
    problems = write(every, folder)
    for old in set(folder.glob("*.txt")) - {folder / path_of(requires).name for requires in every}:
        old.unlink()
    return problems


def write(sets: Iterable[tuple[str, ...]], folder: Path = FOLDER) -> list[str]:
    """Write the lock of each set, and return uv's message where it failed."""
    folder.mkdir(exist_ok=True)
    problems = [_compile(requires, folder / path_of(requires).name) for requires in sets]
    return [problem for problem in problems if problem]


def _compile(requires: tuple[str, ...], target: Path) -> str:
    source = target.with_suffix(".in")
    source.write_text("".join(f"{line}\n" for line in requires))
    try:
        ended = run_uv(
            (
                "pip",
                "compile",
                "--quiet",
                "--universal",
                f"--python-version={OLDEST[0]}.{OLDEST[1]}",
                "--generate-hashes",
                "--no-header",
                "--no-annotate",
                "--upgrade",
                f"--output-file={target}",
                str(source),
            ),
            target.parent,
        )
    finally:
        source.unlink()
    return f"{' '.join(requires)}: {' '.join(ended.last_lines)}" if ended.returncode else ""
