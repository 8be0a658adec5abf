"""Print the changelog's section of a version, as the notes of a release: `changelog_section.py 0.2.0`.

Ends with 1 if the changelog has no such section, or an empty one.
"""

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"


def section(text: str, version: str) -> str:
    """Return what stands below the heading of `version`, up to the next heading of its level; empty if none."""
    found = re.search(
        rf"^## \[?{re.escape(version)}\]?(?!\S).*?$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    return found.group(1).strip() if found else ""


if __name__ == "__main__":
    notes = section(CHANGELOG.read_text(encoding="utf-8"), sys.argv[1])
    if not notes:
        sys.exit(f"CHANGELOG.md has no section for {sys.argv[1]}; add «## {sys.argv[1]}»")
    print(notes)
