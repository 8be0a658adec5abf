"""What earlier runs taught of the noise of this machine: kept in the cache, and in the header of each run begun since.

keep(machine, learned(run, stacks))      # after a race
of(machine)                              # the table that the next run is judged with
"""

import json
import os
from contextlib import suppress

from pydantic import ValidationError

from velodrome.model.errors import CacheError, NoHomeError
from velodrome.model.noise import SHARES, SHIPPED, Noise, Spread, noise_of, together
from velodrome.model.results import COMPARABLE, Machine, adapter
from velodrome.run import cache

NAME = "noise.json"


def of(machine: Machine) -> Noise:
    """Return the table for this machine; the shipped table where none was kept, or it cannot be read."""
    seen = _read_seen(machine)
    return noise_of(seen) if seen else SHIPPED


def keep(machine: Machine, now: dict[str, Spread]) -> None:
    """Add what a run taught. What cannot be kept is forgotten: no race fails by it."""
    if not now:
        return
    with suppress(OSError, CacheError, NoHomeError):
        path = cache.folder("") / NAME
        seen = together(_read_seen(machine), now)
        text = json.dumps(
            {"machine": _called(machine), "seen": adapter(dict[str, Spread]).dump_python(seen, mode="json")},
            indent=1,
        )
        draft = path.with_name(f".{NAME}-{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)


def _read_seen(machine: Machine) -> dict[str, Spread]:
    """Return what was seen here; nothing where it was on a machine that differs, or the file is damaged."""
    try:
        kept = json.loads((cache.root() / NAME).read_text(encoding="utf-8"))
        if kept["machine"] != _called(machine):
            return {}
        seen = adapter(dict[str, Spread]).validate_python(kept["seen"])
    except (OSError, ValueError, KeyError, TypeError, ValidationError, NoHomeError):
        return {}
    return {
        name: spread for name, spread in seen.items() if name in SHARES and spread.share > 0 and spread.df > 0
    }


def _called(machine: Machine) -> dict[str, str]:
    return {name: str(machine.get(name)) for name in COMPARABLE}
