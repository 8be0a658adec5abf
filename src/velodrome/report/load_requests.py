"""Several requests of one load: a line for each, with how often it was sent and what came of it."""

from collections.abc import Mapping
from typing import Any

from velodrome.model import measurement, quantity
from velodrome.report import typeset
from velodrome.report.columns import columns

HEADS = ("request", "share", "sent", "due p50", "p99", "sent p50", "p99", "errors", "what")


def table(document: Mapping[str, Any]) -> list[str]:
    """Return the lines, headed; none for a load with one request."""
    requests = document.get("by_request") or ()
    if not requests:
        return []
    loop = document["load"]["model"]
    found = ["", *columns(HEADS, [_row(one, loop) for one in requests], left=("what",))]
    unsent = document["requests"] - sum(one["requests"] for one in requests)
    if unsent > 0:
        found.append(f" {quantity.grouped(unsent)} were never sent, so none of them was drawn.")
    return found


def _row(one: Mapping[str, Any], loop: str) -> list[str]:
    due, sent = one["latency_ms"]["due"], one["latency_ms"]["sent"]
    return [
        typeset.visible(one["name"]),
        quantity.percent(one["weight"]),
        quantity.grouped(one["requests"]),
        quantity.milliseconds(due["p50"]),
        quantity.milliseconds(due["p99"]),
        quantity.milliseconds(sent["p50"]),
        quantity.milliseconds(sent["p99"]),
        quantity.grouped(measurement.failed(one, loop)),
        _faults(one),
    ]


def _faults(one: Mapping[str, Any]) -> str:
    """Return `bad status 3 · timeout 1`."""
    counts = [(name, count) for name, count in one["outcomes"].items() if count and name != "ok"]
    return " · ".join(f"{name.replace('_', ' ')} {quantity.grouped(count)}" for name, count in counts)
