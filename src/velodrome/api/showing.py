"""Tables for notebooks; text that a server or a branch may have chosen is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from velodrome.model import quantity
from velodrome.report.typeset import visible


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], said: Sequence[str] = ()) -> str:
    """Return a table with sentences below it, as a piece of HTML."""
    head = "".join(f"<th>{_text(one)}</th>" for one in heads)
    body = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    below = "".join(f"<p>{_text(one)}</p>" for one in said if one)
    return (
        f"<div><strong>{_text(title)}</strong><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        f"{below}</div>"
    )


def columns(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the cells of rows, as `table` takes them; numbers with no more digits than people read."""
    return list(rows[0]) if rows else [], [[_cell(value) for value in row.values()] for row in rows]


def _cell(value: object) -> str:
    if value is None:
        return quantity.MISSING
    return quantity.number(value) if isinstance(value, float) else str(value)


def _text(text: str) -> str:
    return escape(visible(text))
