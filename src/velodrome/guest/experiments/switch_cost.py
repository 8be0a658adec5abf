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
from typing import Any, Callable, Dict, List, Optional, Tuple

Run = Callable[[int], int]
"""Switches about so many times, and returns how often it did."""

LONG_S = 0.03
"""CPU time of one run: long beside the clock's grain (1 us) and the start of a thread or process (100 us)."""
SLICE_S = 10e-6
"""Between two forced switches of threads, instead of Python's own 5 ms, so that many fit into a run."""
FORCED = 100
"""Forced switches in a run at least: fewer do not show against what a run differs from the next. Whoever waits for
the GIL has to be woken to ask for it, so that on a busy machine, or with one CPU, there are fewer.
"""


def by_generator(count: int) -> int:
    """Two generators, resumed in turns: into one and out of it are two switches."""

    def flow() -> Any:
        while True:
            yield

    first, second = flow(), flow()
    into_first, into_second = first.__next__, second.__next__
    for _ in range(count // 4):
        into_first()
        into_second()
    return count // 4 * 4


def by_greenlet(count: int) -> int:
    """Two greenlets that switch to each other by hand. Needs greenlet installed."""
    import greenlet

    def flow(other: Any) -> None:
        switch = other.switch
        for _ in range(count // 2):
            switch(first)  # what is given is taken by the first switch alone: then `flow` begins with it

    first, second = greenlet.greenlet(flow), greenlet.greenlet(flow)
    first.switch(second)
    return count // 2 * 2


def _tasks(many: int) -> Run:
    """So many tasks of asyncio that let the others go on: `sleep(0)`. Once round, the loop looks for events."""

    def by_sleep(count: int) -> int:
        async def flow() -> None:
            for _ in range(count // many):
                await asyncio.sleep(0)

        async def all_of_them() -> None:
            await asyncio.gather(*[flow() for _ in range(many)])

        asyncio.run(all_of_them())
        return count // many * many

    return by_sleep


def by_future(count: int) -> int:
    """Two tasks of asyncio; each wakes the other by a future and waits for its own."""

    async def both() -> None:
        loop = asyncio.get_event_loop()
        turns = [loop.create_future(), loop.create_future()]

        async def flow(mine: int, other: int) -> None:
            for _ in range(count // 2):
                await turns[mine]
                turns[mine] = loop.create_future()
                turns[other].set_result(None)

        turns[0].set_result(None)
        await asyncio.gather(flow(0, 1), flow(1, 0))

    asyncio.run(both())
    return count // 2 * 2


def by_lock(count: int) -> int:
    """Two threads that hand each other a lock."""
    turns = threading.Lock(), threading.Lock()
    turns[1].acquire()

    def flow(mine: threading.Lock, other: threading.Lock) -> None:
        for _ in range(count // 2):
            mine.acquire()
            other.release()

    return _two_threads(flow, turns, count)


def by_condition(count: int) -> int:
    """Two threads that wake each other by a condition."""
    condition = threading.Condition()
    turn = [0]

    def flow(mine: int, other: int) -> None:
        with condition:
            for _ in range(count // 2):
                while turn[0] != mine:
                    condition.wait()
                turn[0] = other
                condition.notify()

    return _two_threads(flow, (0, 1), count)


def _two_threads(flow: Callable[[Any, Any], None], ends: Tuple[Any, Any], count: int) -> int:
    threads = [threading.Thread(target=flow, args=ends), threading.Thread(target=flow, args=ends[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return count // 2 * 2


def by_pipe(count: int) -> int:
    """Two processes that wake each other by a byte in a pipe."""
    there, back = os.pipe(), os.pipe()
    pid = os.fork()
    reading, writing = (there[0], back[1]) if pid == 0 else (back[0], there[1])
    for _ in range(count // 2):
        if pid:
            os.write(writing, b"x")
        os.read(reading, 1)
        if not pid:
            os.write(writing, b"x")
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    for end in (*there, *back):
        os.close(end)
    return count // 2 * 2


KINDS: Dict[str, Run] = {
    "generator": by_generator,
    "greenlet": by_greenlet,
    "task-sleep": _tasks(2),
    "task-crowd": _tasks(100),
    "task-future": by_future,
    "thread-lock": by_lock,
    "thread-condition": by_condition,
    "process-pipe": by_pipe,
}


def cpu_s() -> float:
    """Return the CPU seconds of this process so far, with its threads and its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


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
    """Return for each kind of flow whether one that works without a pause lets another work meanwhile."""

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


def measured(repeats: int) -> Dict[str, List[float]]:
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
    told = parser.parse_args()
    switches = {"thread-forced": forced(told.repeats)}  # first: it takes a second CPU
    if told.cpu >= 0 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {told.cpu})
    switches.update(measured(told.repeats))
    summary = {name: quartiles(values) if values else None for name, values in switches.items()}
    print(json.dumps({"switches": summary, "interrupted": interrupted()}))


if __name__ == "__main__":
    main()
