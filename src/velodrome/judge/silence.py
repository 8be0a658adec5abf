"""Whether a target fell silent: from a moment on it gave no right answer any more, though it was asked to the end.

Sums over the span hide that. A closed loop asks a target that refuses it once a second for each connection, so one that
is gone for half of the span costs a few failures beside millions of answers; one that hangs costs none at all until
they time out. The seconds of the document (`series`) show both.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from velodrome.model import quantity

LEAST_S, LEAST_SHARE = 1.0, 0.05
"""A silence is at least so long, and so much of the span: any span may end in a short stall."""
LIKELY = 10.0
"""Right answers that should have come in it at the rate before. At one in two seconds two silent ones say nothing."""
SLOW = 2.0
"""It is also so many times a median latency: where all connections keep step, answers come in waves."""


def silent_after(document: Mapping[str, Any]) -> float | None:
    """Return the second of the span from which on no right answer came, to the whole second; None: they came.

    A load without any right answer is not meant, nor one that asked for nothing at its end.
    """
    series: Sequence[Mapping[str, Any]] = document.get("series") or ()
    answering = [second for second in series if second["ok"]]
    if not answering:
        return None
    since = answering[-1]["at_s"] + 1.0
    silent = [second for second in series if second["at_s"] >= since]
    length = document["duration_s"] - since
    if length < max(LEAST_S, LEAST_SHARE * document["duration_s"]) or not _asked(silent):
        return None
    missed = sum(second["ok"] for second in answering) / since * length
    median_s = max((second["p50_ms"] or 0.0 for second in answering), default=0.0) / 1000
    return since if missed >= LIKELY and length >= SLOW * median_s else None


def told(after_s: float) -> str:
    """Return what a silence is, as the beginning of a sentence or a part of one: without its end."""
    return f"the target gave no right answer after {quantity.span(after_s)}"


def _asked(silent: Sequence[Mapping[str, Any]]) -> bool:
    """Whether requests were tried: some ended, or some were under way or waited all the time."""
    return any(second["requests"] for second in silent) or (
        bool(silent) and all(second["in_flight"] + second["waiting"] for second in silent)
    )
