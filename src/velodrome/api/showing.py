"""Tables for notebooks; text that a server or a branch may have chosen is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

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


def _text(text: str) -> str:
    return escape(visible(text))
