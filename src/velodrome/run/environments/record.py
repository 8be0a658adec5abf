"""The record of an environment that uv made: what is in it, and by being there, that it is whole.

<environment>/velodrome.json        written last, by a rename: half of it is never there
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAME = "velodrome.json"


def python(home: Path) -> Path:
    """Return the interpreter of an environment."""
    return home / "bin" / "python"


def read(home: Path) -> dict[str, Any] | None:
    """Return the record; None: the environment is not whole, or the interpreter it was made of is gone."""
    try:
        told: dict[str, Any] = json.loads((home / NAME).read_text())
    except (OSError, ValueError):
        return None
    return told if os.access(python(home), os.X_OK) else None


def write(home: Path, told: Mapping[str, Any]) -> None:
    """Call an environment whole, and say what is in it. Raises OSError."""
    partly = home / f"{NAME}.partly"
    partly.write_text(json.dumps(told))
    partly.rename(home / NAME)
