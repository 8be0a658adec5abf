"""A WSGI application that tells who serves it: patched or not, in which process, beside how many others.

Each request waits 200 ms as code that blocks does, and answers one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any, Callable, Iterable

WAIT_S = 0.2
_inside = 0
_most = 0


def app(environ: Any, start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer, having waited."""
    global _inside, _most  # noqa: PLW0603 - greenlets of a process share it; that is what is counted
    _inside += 1
    _most = max(_most, _inside)
    time.sleep(WAIT_S)
    gevent = sys.modules.get("gevent.monkey")
    facts = {
        "pid": os.getpid(),
        "at_once": _most,
        "patched": {
            name: bool(gevent and gevent.is_module_patched(name)) for name in ("socket", "threading", "time")
        },
        "greenlet": type(_current()).__name__,
        "threads": threading.active_count(),
    }
    _inside -= 1
    body = json.dumps(facts).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def _current() -> Any:
    greenlet = sys.modules.get("greenlet")
    return greenlet.getcurrent() if greenlet else None
