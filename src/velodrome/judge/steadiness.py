"""Requests that all take as long, but for the fastest: what a load shows of the first request of a connection.

    symptoms_of_load(document).reused      # Reused(first_ms=0.5, later_ms=42.5)

Next to nothing is imported here: `velodrome load` ends with it, after a load that may have been of a second.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from velodrome.model.symptoms import TOOK_CPU, Reused, Symptoms

STEADY = 0.15
"""Of the median, what the mean may differ by where all requests take about as long."""
FEW = 20
"""Requests that a median is of, at least."""
SECOND = 3
"""Requests for each connection, at least, for the median to be of reused connections."""


def all_but_the_fastest(loads: Sequence[tuple[float | None, float | None, float | None]]) -> Reused | None:
    """Return the fastest of all loads and their lowest median, given fastest, median and mean of each, milliseconds.

    None: in one of them requests differ among themselves too, so that the fastest may be another kind of request.
    """
    fastest, medians = [], []
    for least, median, mean in loads:
        if least is None or median is None or mean is None or abs(mean - median) > STEADY * median:
            return None
        fastest.append(least)
        medians.append(median)
    return Reused(min(fastest), min(medians)) if medians else None


def symptoms_of_load(document: Mapping[str, Any]) -> Symptoms:
    """Return what one load of a URL shows (`velodrome/load/1`): nothing is known of what serves it."""
    load, server, sent = document["load"], document.get("server"), document["latency_ms"]["sent"]
    busy = server is not None and server["busiest_cpu_s"] >= TOOK_CPU * server["span_s"]
    kept = document["connections"]["opened"] or 0
    reused = None
    # A request of its own for each connection shows nothing of the second.
    if load["protocol"] == "http" and not busy and document["ok"] >= max(FEW, SECOND * kept):
        reused = all_but_the_fastest([(document["fastest_ms"], sent["p50"], sent["mean"])])
    return Symptoms(None, None, reused, "", (0, 0), 1, 1)
