"""What one try to get an answer came to, where it is not a right one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

UNFINISHED = "it takes the connection but does not finish an answer"


@dataclass(frozen=True)
class Wrong:
    """An answer came and it is not the right one."""

    what: str


@dataclass(frozen=True)
class Partly:
    """Of several requests enough were answered right, and some were not."""

    what: str


@dataclass(frozen=True)
class Words:
    """How a protocol tells of a try that failed."""

    foreign: str
    """Before what does not speak it."""
    silent: str
    """In what the engine says of a server that takes the connection and says nothing of it: another matter than a
    slow one.
    """
    broken: str
    """What breaks off when the connection does."""


def of_document(document: Mapping[str, Any], words: Words) -> str | Wrong | None:
    """Return what a load of one request came to: None for a right answer, a wrong one, or why there is none."""
    outcome = next((name for name, count in document["outcomes"].items() if count), "unfinished")
    examples = document["examples"]
    what = examples[0]["text"] if examples else UNFINISHED
    if outcome == "ok":
        return None
    if outcome in ("timeout", "unfinished"):
        return what if words.silent in what else UNFINISHED
    if outcome == "refused":
        return "nothing listens on its port" if "nothing listens" in what else what
    if outcome == "reset":
        return f"{words.broken} ({what})"
    return Wrong(words.foreign + what if outcome == "bad_protocol" else f"it answers wrongly: {what}")
