"""The steps of a load whose rate changes: a line for each, with what was asked and what came of it."""

from collections.abc import Mapping
from typing import Any

from velodrome.model import quantity
from velodrome.report.columns import columns

HEADS = ("step", "asked/s", "answered/s", "due p50", "p99", "sent p50", "p99", "errors", "our lag p99")


def table(document: Mapping[str, Any]) -> list[str]:
    """Return the lines, headed; none for a load with one rate."""
    steps = document.get("steps") or ()
    if not steps:
        return []
    rows = [[f"at {quantity.span(step['at_s'])}", asked(step), *_came(step)] for step in steps]
    return ["", *columns(HEADS, rows), " latencies in ms; a request belongs to the step it fell due in."]


def asked(step: Mapping[str, Any]) -> str:
    """Return `500`, or of a ramp `500–900`."""
    low, high = (quantity.short(round(step[key], 2)) for key in ("rate", "to_rate"))
    return low if low == high else f"{low}–{high}"


def _came(step: Mapping[str, Any]) -> list[str]:
    due, sent = step["latency_ms"]["due"], step["latency_ms"]["sent"]
    return [
        quantity.number(step["throughput_rps"]),
        quantity.milliseconds(due["p50"]),
        quantity.milliseconds(due["p99"]),
        quantity.milliseconds(sent["p50"]),
        quantity.milliseconds(sent["p99"]),
        quantity.grouped(step["requests"] - step["ok"]),
        quantity.milliseconds(step["lag_ms"]["p99"]),
    ]


def name(schedule: list[Mapping[str, Any]]) -> str:
    """Return `100 to 5 000/s in 50 steps`, `0 to 500/s` of a ramp."""
    ends = [rate for step in schedule for rate in (step["rate"], step["to_rate"]) if rate is not None]
    first, last = quantity.short(ends[0]), quantity.short(ends[-1])
    top = quantity.short(max(ends))
    through = f" by way of {top}" if top not in (first, last) else ""
    steps = "" if all(step["to_rate"] is not None for step in schedule) else f" in {len(schedule)} steps"
    return f"{first} to {last}/s{through}{steps}"
