"""What the cache holds, as plain aligned lines and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from velodrome.model import quantity
from velodrome.model.kept import Damage, Kept, Stock
from velodrome.report.listing import aligned
from velodrome.report.typeset import plural, visible

DAY_S = 86400.0


def lines(stock: Stock, folder: str, now: float) -> list[str]:
    """Return what is kept, a line each, and the sum; `now` is Unix time."""
    if not stock.every:
        return [f"nothing is kept in {visible(folder)}"]
    table = [("kept", "size", "frees", "last used", "for")]
    table += [
        (
            f"{one.kind}/{visible(one.name)}",
            quantity.memory(one.size_bytes),
            quantity.memory(one.freed_bytes),
            _ago(one, now),
            visible(one.what),
        )
        for one in stock.every
    ]
    shared = stock.size_bytes - stock.freed_bytes
    aside = f"; {quantity.memory(shared)} of it are uv's cache's too (uv cache prune)" if shared else ""
    return [
        *aligned(table),
        "",
        f"{quantity.memory(stock.size_bytes)} in {visible(folder)}{aside}.",
        "Make room:  velodrome cache prune --older-than 30d      or  --to-size 2GB",
    ]


def removed(stock: Stock) -> list[str]:
    """Return what went, and what that freed."""
    if not stock.every:
        return ["nothing to remove: what is kept was used since, or is used now"]
    told = [
        f"removed {one.kind}/{visible(one.name)}{f'  {visible(one.what)}' if one.what else ''}"
        for one in stock.every
    ]
    shared = stock.size_bytes - stock.freed_bytes
    aside = f"; {quantity.memory(shared)} more are kept by uv's own cache (uv cache prune)" if shared else ""
    return [*told, f"{quantity.memory(stock.freed_bytes)} freed{aside}"]


def verified(checked: int, damages: Sequence[Damage]) -> list[str]:
    """Return what is damaged, file by file."""
    told = [
        f"{one.kept.kind}/{visible(one.kept.name)}: {visible(difference)}"
        for one in damages
        for difference in one.differences
    ]
    if damages:
        return [
            *told,
            f"{len(damages)} of {checked} are damaged; they are made again when they are next used",
        ]
    return [f"{plural(checked, 'thing')} kept, each as it was made"]


def document(stock: Stock, folder: str) -> str:
    """Return what is kept as JSON: bytes, and Unix time in seconds."""
    every = {"folder": folder, "size_bytes": stock.size_bytes, "freed_bytes": stock.freed_bytes}
    return json.dumps(every | {"kept": [asdict(one) for one in stock.every]}, indent=2)


def _ago(one: Kept, now: float) -> str:
    if one.in_use:
        return "in use"
    days = int(max(0.0, now - one.last_used) / DAY_S)
    return "today" if days == 0 else f"{plural(days, 'day')} ago"
