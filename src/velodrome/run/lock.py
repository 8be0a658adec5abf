"""Locks: for every set of requirements that ships, the exact packages with their hashes (`locks/*.txt`).

    python -m velodrome.run.lock        renews them all; `make lock` does this too

A lock is for Python 3.11 and newer on any system (`uv pip compile --universal`). It names packages and
hashes, never where they come from.
"""

import hashlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from velodrome.guest import catalog
from velodrome.run.uv import run_uv

FOLDER = Path(__file__).parent / "locks"
OLDEST = (3, 11)
"""The oldest Python the locks are resolved for; that of velodrome itself."""


def path_of(requires: tuple[str, ...]) -> Path:
    """Return where the lock of a set of requirements is, whether it is there or not."""
    names = "+".join(re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0].lower() for line in requires)
    digest = hashlib.sha256("\n".join(requires).encode()).hexdigest()[:8]
    return FOLDER / f"{names[:80]}-{digest}.txt"


def covering(requires: tuple[str, ...], python: tuple[int, int]) -> Path | None:
    """Return the lock for a set of requirements on a Python, or None: it has to be resolved anew."""
    path = path_of(requires)
    return path if requires and python >= OLDEST and path.is_file() else None


def wanted() -> list[tuple[str, ...]]:
    """Return the distinct sets of requirements of the stacks that ship, sorted."""
    shipped = [entry.thing for entry in catalog.shipped(catalog.STACK) if not entry.error]
    return sorted({catalog.requires(stack) for stack in shipped} - {()})


def renew(sets: Iterable[tuple[str, ...]], folder: Path = FOLDER) -> list[str]:
    """Write the lock of each set, remove those nobody wants, and return what uv said where it failed."""
    folder.mkdir(exist_ok=True)
    problems = []
    keep = set()
    for requires in sets:
        target = folder / path_of(requires).name
        keep.add(target)
        problem = _compile(requires, target)
        if problem:
            problems.append(problem)
    for old in set(folder.glob("*.txt")) - keep:
        old.unlink()
    return problems


def _compile(requires: tuple[str, ...], target: Path) -> str:
    source = target.with_suffix(".in")
    source.write_text("".join(f"{line}\n" for line in requires))
    try:
        said = run_uv(
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
    return f"{' '.join(requires)}: {said.stderr.strip()}" if said.returncode else ""


def main() -> int:
    """Renew all locks; the exit status is 3 if one could not be made."""
    problems = renew(wanted())
    for problem in problems:
        print(problem, file=sys.stderr)
    return 3 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
