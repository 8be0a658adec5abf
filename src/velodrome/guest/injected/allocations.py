"""Memory: which line of the app allocates what requests leave behind, and how many blocks there are.

For the first the host asks twice, with a load in between.
Memory is traced (`tracemalloc`) from the first time on, so that whatever is traced the second time was allocated
meanwhile and is still there. Each allocation is that of the innermost line of the app's own code on its stack.
"""

from __future__ import annotations

import gc
import linecache
import os
import sys
import threading

# As it is before gevent replaces it.
from _thread import start_new_thread
from itertools import count
from typing import Any, Callable, Dict, List, Optional, Tuple

from velodrome.guest.injected.giving import Giving, Treatments

BEGIN, END = "trace-begin", "trace-end"
"""Files by which the host has tracing begin and end."""
LOOKED_S = 0.02
DEPTH = 25
"""Frames of each allocation: an app's own are often below many of a framework's."""
MOST = 8
"""Lines reported."""


def _trace(giving: Giving, _: bool) -> None:
    """Trace memory between two questions of the host, and write which lines allocated what is still there."""

    def begin() -> None:
        start_new_thread(_answer, (giving,))

    begin()
    os.register_at_fork(after_in_child=begin)


def _answer(giving: Giving) -> None:
    giving.wait_for(BEGIN, LOOKED_S)
    import tracemalloc

    from velodrome.guest.injected.heartbeat import is_own

    gc.collect()
    tracemalloc.start(DEPTH)
    giving.write("traced", {"began": True})
    giving.wait_for(END, LOOKED_S)
    gc.collect()
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()
    giving.write("traced", {"kept": kept_by_line(snapshot, is_own)})


def kept_by_line(snapshot: Any, is_own: Callable[[str], bool]) -> List[Dict[str, Any]]:
    """Return bytes and blocks for each line of the app's own code, those with most bytes first."""
    sums: Dict[Tuple[str, int], List[int]] = {}
    for trace in snapshot.traces:
        line = _own_line(trace.traceback, is_own)
        if line is not None:
            kept = sums.setdefault(line, [0, 0])
            kept[0] += trace.size
            kept[1] += 1
    most = sorted(sums.items(), key=lambda item: -item[1][0])[:MOST]
    return [
        {
            "file": file,
            "line": number,
            "text": linecache.getline(file, number).strip()[:200],
            "bytes": size,
            "blocks": blocks,
        }
        for (file, number), (size, blocks) in most
    ]


def _own_line(traceback: Any, is_own: Callable[[str], bool]) -> Optional[Tuple[str, int]]:
    """Return the innermost line of the app's own, which is the last of those that are: tracebacks begin outside."""
    for frame in reversed(traceback):
        if is_own(frame.filename):
            return frame.filename, frame.lineno
    return None


COUNT, COUNTED_S = "count-%d", 0.02
"""File by which the host asks for the next count, and how often a process looks for it."""


def _live_blocks(giving: Giving, _: bool) -> None:
    """Count the blocks of memory that objects of Python have whenever the host asks, after a collection of garbage.

    Memory that is handed out and taken back leaves as many as before, however much of it the process keeps.
    """

    def tell() -> None:
        for number in count():
            giving.wait_for(COUNT % number, COUNTED_S)
            gc.collect()
            giving.write("blocks", {"number": number, "blocks": sys.getallocatedblocks()})

    def begin() -> None:
        threading.Thread(target=tell, name="velodrome-blocks", daemon=True).start()

    if hasattr(sys, "getallocatedblocks"):
        begin()
        os.register_at_fork(after_in_child=begin)


TREATMENTS: Treatments = {"allocations": _trace, "live-blocks": _live_blocks}
