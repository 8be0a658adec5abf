"""What it costs to switch from one flow of control to another: CPU time for each time control is handed over.

python -m velodrome.guest.experiments.switch_cost --repeats 9 --cpu 0

Prints one line of JSON: by kind of switch the median and the quartiles in nanoseconds, null where it cannot be
had; and by kind of flow whether it can be made to stop in the midst of its work, and on how many threads it ran.
All CPU time is counted, that of the kernel and of all threads and processes too. What the loops themselves take
is measured and taken off.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sys
import threading
import time
from typing import Any, Dict, List, Optional

from velodrome.guest.experiments.switch_kinds import KINDS, Run

LONG_S = 0.03
"""CPU time of one run: long beside the clock's grain (1 us) and the start of a thread or process (100 us)."""
SLICE_S = 10e-6
"""Between two forced switches of threads, instead of Python's own 5 ms, so that many fit into a run."""
FORCED = 100
"""Forced switches in a run at least: fewer do not show against what a run differs from the next. Whoever waits for
the GIL has to be woken to ask for it, so that on a busy machine, or with one CPU, there are fewer.
"""


def cpu_s() -> float:
    """Return the CPU seconds of this process so far, with its threads and its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def empty(count: int) -> float:
    """Return the CPU seconds of a loop that goes round so many times and does nothing."""
    began = cpu_s()
    for _ in range(count):
        pass
    return cpu_s() - began


def cost_ns(run: Run, count: int) -> float:
    """Return the nanoseconds of CPU of one switch."""
    began = cpu_s()
    switches = run(count)
    return (cpu_s() - began - empty(switches // 2)) / switches * 1e9


def enough(run: Run) -> int:
    """Return how many switches take `LONG_S`."""
    count = 400
    while True:
        began = cpu_s()
        run(count)
        used = cpu_s() - began
        if used >= LONG_S / 4:
            return max(400, int(count * LONG_S / used) // 4 * 4)
        count *= 4


def forced_ns(turns: int) -> Optional[float]:
    """Return the nanoseconds of CPU of a switch that threads are made to do; None where they are not (no GIL)."""
    seen: List[int] = []

    def work(mine: int, count: int) -> None:
        for _ in range(count):
            if seen[-1] != mine:  # somebody else ran since
                seen.append(mine)

    def used(threads: int) -> float:
        seen[:] = [-1]
        flows = [threading.Thread(target=work, args=(mine, turns // threads)) for mine in range(threads)]
        began = cpu_s()
        for flow in flows:
            flow.start()
        for flow in flows:
            flow.join()
        return cpu_s() - began

    before = sys.getswitchinterval()
    sys.setswitchinterval(SLICE_S)
    try:
        alone = used(1)
        together = used(2)
    finally:
        sys.setswitchinterval(before)
    switches = len(seen) - 2  # the first look of each is none
    return (together - alone) / switches * 1e9 if switches >= FORCED else None


def interrupted() -> Dict[str, bool]:
    """Return for each kind of flow whether a flow that works without a pause lets another work meanwhile."""

    def thread() -> bool:
        looks: List[int] = []
        stop = threading.Event()

        def other() -> None:
            while not stop.is_set():
                looks.append(1)

        beside = threading.Thread(target=other)
        beside.start()
        before = len(looks)
        until = time.monotonic() + 0.1
        while time.monotonic() < until:
            pass
        seen = len(looks) > before
        stop.set()
        beside.join()
        return seen

    def task() -> bool:
        looks: List[int] = []

        async def other() -> None:
            while True:
                looks.append(1)
                await asyncio.sleep(0)

        async def work() -> bool:
            beside = asyncio.ensure_future(other())
            await asyncio.sleep(0)
            before = len(looks)
            until = time.monotonic() + 0.1
            while time.monotonic() < until:
                pass
            beside.cancel()
            return len(looks) > before

        return asyncio.run(work())

    def generator() -> bool:
        looks: List[int] = []

        def other() -> Any:
            while True:
                looks.append(1)
                yield

        flow = other()
        next(flow)
        before = len(looks)
        until = time.monotonic() + 0.1
        while time.monotonic() < until:
            pass
        return len(looks) > before

    return {"thread": thread(), "task": task(), "generator": generator()}


def quartiles(values: List[float]) -> Dict[str, float]:
    """Return median and quartiles."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return {
        "ns": ordered[last // 2],
        "low_ns": ordered[last // 4],
        "high_ns": ordered[last - last // 4],
    }


def measure(repeats: int) -> Dict[str, List[float]]:
    """Measure all kinds, each in its turn, so many times; return the nanoseconds of each time."""
    counts = {}
    for name, run in KINDS.items():
        try:
            counts[name] = enough(run)
        except ImportError:  # greenlet is not installed
            continue
    found: Dict[str, List[float]] = {name: [] for name in KINDS}
    for _ in range(repeats):
        for name, count in counts.items():
            found[name].append(cost_ns(KINDS[name], count))
    return found


def forced(repeats: int) -> List[float]:
    """Return the nanoseconds of forced switches, of those times that had enough of them."""
    found = [forced_ns(1000000) for _ in range(repeats)]
    return [value for value in found if value is not None]


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--cpu", type=int, default=-1, help="run on this CPU alone")
    options = parser.parse_args()
    switches = {"thread-forced": forced(options.repeats)}  # first: it takes a second CPU
    if options.cpu >= 0 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {options.cpu})
    switches.update(measure(options.repeats))
    summary = {name: quartiles(values) if values else None for name, values in switches.items()}
    print(json.dumps({"switches": summary, "interrupted": interrupted()}))


if __name__ == "__main__":
    main()
