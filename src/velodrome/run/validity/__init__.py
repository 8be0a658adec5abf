"""Why a measurement may not be what it seems: pure functions from facts to flags, one file per family.

Every threshold stands beside its reason. INVALID: the figures are not the server's, or not of the load asked
for. NOTE: they are, and the reader should know this beside them.
"""

from velodrome.model.measurement import Flag
from velodrome.run.validity import answers, companions, consistency, form, generator, link, machine, server
from velodrome.run.validity.evidence import Evidence

__all__ = ["Evidence", "flags"]

_CHECKS = (
    *server.CHECKS,
    *answers.CHECKS,
    *form.CHECKS,
    *generator.CHECKS,
    *companions.CHECKS,
    *link.CHECKS,
    *consistency.CHECKS,
    *machine.CHECKS,
)


def flags(evidence: Evidence) -> tuple[Flag, ...]:
    """Return every flag the evidence calls for, the server's first, at most one of each kind and check."""
    return tuple(flag for check in _CHECKS if (flag := check(evidence)) is not None)
