"""Requirements of a contestant: those of its stack, with the versions a study sets instead of the pinned ones.

with_versions(("tornado==6.5.2",), {"Tornado": "5.1.1"})   ->  ("tornado==5.1.1",)
"""

import re
from collections.abc import Mapping, Sequence

_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?[^;]*(;.*)?")


def with_versions(requires: Sequence[str], packages: Mapping[str, str]) -> tuple[str, ...]:
    """Return requirements in which each of `packages` has that version; one they do not name is added.

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
