"""Why a measurement may not be what it seems: pure functions from facts to flags, family by family.

Every threshold stands beside its reason. INVALID: the figures are not the server's, or not of the requested load
for. NOTE: they are, and the reader should know this beside them.

`lab` holds the facts and looks at what surrounds the server; `server` looks at the server, at its responses, and at
whether the figures agree.
"""

from velodrome.model.measurement import Flag
from velodrome.run.validity.lab import (
    OF_THE_COMPANIONS,
    OF_THE_GENERATOR,
    OF_THE_LINK,
    OF_THE_MACHINE,
    Evidence,
)
from velodrome.run.validity.server import OF_CONSISTENCY, OF_THE_ANSWERS, OF_THE_FORM, OF_THE_SERVER

__all__ = ["Evidence", "flags"]

CHECKS = (
    *OF_THE_SERVER,
    *OF_THE_ANSWERS,
    *OF_THE_FORM,
    *OF_THE_GENERATOR,
    *OF_THE_COMPANIONS,
    *OF_THE_LINK,
    *OF_CONSISTENCY,
    *OF_THE_MACHINE,
)


def flags(evidence: Evidence) -> tuple[Flag, ...]:
    """Return every flag the evidence calls for, the server's first, at most one of each kind and check."""
    return tuple(flag for check in CHECKS if (flag := check(evidence)) is not None)
