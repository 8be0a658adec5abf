"""Which of a load's requests failed, and which were only under way when it ended.

`counts` is a `velodrome/load/1` document or a part of it that has `requests`, `ok` and `outcomes`; `loop` is `open` or
`closed`.
"""

from collections.abc import Mapping
from typing import Any

UNTIMED = ("refused", "reset", "bad_protocol")
"""Outcomes of requests that are in no histogram: how soon somebody is turned away says nothing of answers."""


def under_way(counts: Mapping[str, Any], loop: str) -> int:
    """Return how many requests of a closed loop were still under way at its end.

    It asks again until the end, so it always ends with some; they are younger than the time-out, and of a slow server
    they may be half of all. In an open loop each was due at its time and had as long as the others, and the drain.
    """
    return int(counts["outcomes"].get("unfinished", 0)) if loop == "closed" else 0


def failed(counts: Mapping[str, Any], loop: str) -> int:
    """Return how many requests failed: all without a right answer but those that were under way."""
    return int(counts["requests"]) - int(counts["ok"]) - under_way(counts, loop)


def untimed(counts: Mapping[str, Any]) -> dict[str, int]:
    """Return how many requests have no latency, by what became of them."""
    return {name: count for name in UNTIMED if (count := counts["outcomes"].get(name, 0))}
