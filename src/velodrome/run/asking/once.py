"""One request on a fresh connection, sent by the engine, and what came of it."""

from collections.abc import Mapping
from typing import Any

from velodrome.model.errors import EngineError
from velodrome.run import engine
from velodrome.run.asking.answer import Words, Wrong, of_document
from velodrome.run.drivers.driver import Target


def once(
    target: Target,
    asked: Mapping[str, Any],
    words: Words,
    timeout_s: float,
    *,
    payload: bytes = b"",
    expected: bytes | None = None,
) -> str | Wrong | None:
    """Ask once: None for a right answer, a wrong one, or why there is none.

    `asked` is what the engine's load says of the request itself, beside where it goes.
    """
    spec = {
        "url": target.url,
        **asked,
        "connections": 1,
        "requests": 1,
        "timeout_s": timeout_s,
        "drain_s": 0.0,
        "transport": "epoll",
        "allow_target": list(target.allow),
    }
    try:
        return of_document(engine.load(spec, payload, expected), words)
    except EngineError as error:  # a machine without a free descriptor has one later
        return str(error)
