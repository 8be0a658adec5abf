"""grpcio's gevent compatibility mode: its core waits on threads of gevent's pool and calls back into greenlets.

Without it every wait of grpcio stops the whole process, event loop of gevent and all.
"""

from __future__ import annotations

import sys
from typing import List

_entered: List[bool] = []


def enter() -> None:
    """Enter the mode, once per process. After the standard library was patched, before any object of gRPC is made."""
    if not _entered:
        from grpc.experimental.gevent import init_gevent

        init_gevent()
        _entered.append(True)


def enter_if_patched() -> None:
    """Enter the mode where gevent has patched the standard library; else do nothing."""
    monkey = sys.modules.get("gevent.monkey")
    if monkey is not None and monkey.is_module_patched("socket"):
        enter()
