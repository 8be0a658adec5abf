"""Amounts as people type them: a number and its unit, read by one grammar wherever one is typed.

A span of time is `10s`, `500ms`, `1.5m`, `2h` or `30d`; a bare number is seconds. `512MB` and `1GB` are decimal memory;
`512m`, `1g` and `1GiB` are powers of 1,024: a letter alone is what Docker and systemd mean by it.

Nothing is imported here, not even regular expressions: `velodrome load` reads its options before its first request.
"""

_SPANS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES = {
    "kb": 10**3, "mb": 10**6, "gb": 10**9,
    "k": 2**10, "m": 2**20, "g": 2**30,
    "kib": 2**10, "mib": 2**20, "gib": 2**30,
}  # fmt: skip
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SPACE = " \t\n\r\f\v"


def seconds(text: str) -> float:
    """Return the seconds that `text` means. Raises ValueError, with the forms allowed, on anything else."""
    number, unit = _parts(text)
    if not number or unit not in _SPANS:
        raise ValueError(f"'{text}' is not a span of time; write 10s, 500ms, 1.5m or 2h")
    return float(number) * _SPANS[unit]


def memory_bytes(text: str) -> int:
    """Return the bytes that `text` means. Raises ValueError, with the forms allowed, on anything else."""
    number, unit = _parts(text)
    if not number or unit.lower() not in _SIZES:
        raise ValueError(f"'{text}' is no amount of memory; write 512MB, 1GB, 512m or 1g")
    return round(float(number) * _SIZES[unit.lower()])


def _parts(text: str) -> tuple[str, str]:
    """Return a decimal number and the letters behind it; of what does not begin with a number, nothing."""
    stripped = text.strip(_SPACE)
    number = stripped.rstrip(_LETTERS + _LETTERS.upper())
    unit = stripped[len(number) :]
    number = number.rstrip(_SPACE)
    digits = number.replace(".", "", 1)
    plain = digits.isascii() and digits.isdigit() and not number.endswith(".")
    return (number, unit) if plain else ("", unit)
