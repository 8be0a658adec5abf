"""Amounts of memory as people type them: `512MB` and `1GB` are decimal; `512m`, `1g` and `1GiB` are powers of 1,024."""

import re

_UNITS = {
    "kb": 10**3, "mb": 10**6, "gb": 10**9,
    "k": 2**10, "m": 2**20, "g": 2**30,
    "kib": 2**10, "mib": 2**20, "gib": 2**30,
}  # fmt: skip
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.ASCII | re.IGNORECASE)


def memory_bytes(text: str) -> int:
    """Return the bytes that `text` means. Raises ValueError, with the forms allowed, on anything else.

    A letter alone is what Docker and systemd mean by it.
    """
    match = _FORM.fullmatch(text)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise ValueError(f"'{text}' is no amount of memory; write 512MB, 1GB, 512m or 1g")
    return round(float(match[1]) * unit)
