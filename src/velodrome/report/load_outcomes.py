"""What the requests of a load came to where some failed, by example, with the cure where the cause is plain."""

import re
import textwrap
from collections.abc import Mapping
from typing import Any

from velodrome.model import measurement, quantity
from velodrome.report import typeset

REDIRECTED = re.compile(r"status 30[12378] where ")
"""As the engine begins what it says of such an answer; it puts no byte of the server before it."""


def lines(document: Mapping[str, Any], width: int) -> list[str]:
    """Return counts and a few examples, whole; nothing when none failed."""
    loop = document["load"]["model"]
    if document["ok"] and measurement.failed(document, loop) == 0:
        return []
    counts = [(name, count) for name, count in document["outcomes"].items() if count]
    if not counts:
        return []
    told = " · ".join(f"{outcome(name, loop)} {quantity.grouped(count)}" for name, count in counts)
    found = ["", *typeset.wrapped(f"outcomes: {told}", width)]
    for example in document.get("examples", ()):
        text = f"{outcome(example['outcome'], loop)}: {typeset.visible(str(example['text']))}{_cure(example)}"
        found += textwrap.wrap(text, width - 1, initial_indent="   ", subsequent_indent="      ")
    untimed = sum(measurement.untimed(document).values())
    if 0 < untimed < document["requests"]:
        share = quantity.percent(untimed / document["requests"])
        found += typeset.wrapped(
            f"{share} of the requests have no latency: those above are of the others.", width
        )
    return found


def outcome(name: str, loop: str) -> str:
    """Return what became of requests, in words; `loop`: `open` or `closed`."""
    if name == "unfinished" and loop == "closed":
        return "under way at the end"
    return name.replace("_", " ")


def _cure(example: Mapping[str, Any]) -> str:
    """Return what to do about a failure whose cause is plain, to follow it; mostly nothing."""
    if example["outcome"] == "bad_status" and REDIRECTED.match(str(example["text"])):
        return (
            ". It redirects, and redirects are not followed: load the URL that it leads to (curl -I tells it), or "
            "give --expect-status if to redirect is right"
        )
    return ""
