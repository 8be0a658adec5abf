"""What a treatment has to know of event loops: which runs here, and whether a function is awaited."""

from __future__ import annotations

from inspect import CO_COROUTINE, unwrap
from typing import Any


def running_loop() -> Any:
    """Return the event loop of asyncio that runs here; None: none does."""
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def is_awaited(function: Any) -> bool:
    """Whether a function is an `async def`, or stands in the place of one."""
    code = getattr(unwrap(function), "__code__", None)
    return code is not None and bool(code.co_flags & CO_COROUTINE)
