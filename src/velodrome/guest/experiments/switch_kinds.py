"""Kinds of switch from one flow of control to another: each switches about so many times and says how often it did."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any, Callable, Dict, Tuple

Run = Callable[[int], int]
"""Switches about so many times, and returns how often it did."""


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
