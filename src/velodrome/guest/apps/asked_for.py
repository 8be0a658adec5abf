"""Which environment variables an app asked for and did not find."""

from __future__ import annotations

import os
from typing import Any, Dict

missing: Dict[str, None] = {}
"""Their names, in the order they were first asked for."""


class _Asked(type(os.environ)):  # type: ignore[misc]
    """`os.environ`, which notes what it does not have. `get`, `in` and `os.getenv` all come by here."""

    def __getitem__(self, key: Any) -> Any:
        try:
            return super().__getitem__(key)
        except KeyError:
            if isinstance(key, str):
                missing.setdefault(key)
            raise


def watch() -> None:
    """Note from now on what is asked for in vain."""
    # The object stays the same: who has imported it has it.
    os.environ.__class__ = _Asked
