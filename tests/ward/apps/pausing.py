"""`pauses`: requests that find a lock taken sleep and look again, or sleep with a slot."""

import asyncio
import threading

from answering import answering

CALL_S, HELD_S, PAUSE_S, SLOTS = 0.02, 0.003, 0.1, 4


def polling():
    taken = threading.Lock()

    async def take():
        await asyncio.sleep(CALL_S)
        while not taken.acquire(blocking=False):
            await asyncio.sleep(PAUSE_S)
        try:
            await asyncio.sleep(HELD_S)
        finally:
            taken.release()

    return answering(take)


def waking():
    taken = []

    async def take():
        taken.append(asyncio.Lock()) if not taken else None
        await asyncio.sleep(CALL_S)
        async with taken[0]:
            await asyncio.sleep(HELD_S)

    return answering(take)


def _attempts(inside):
    """Return an app in which one call of ten is made again after a pause, `inside` its slot or not."""
    slots, numbers = [], iter(range(10**9))

    async def call():
        slots.append(asyncio.Semaphore(SLOTS)) if not slots else None
        fails = next(numbers) % 10 == 0
        async with slots[0]:
            await asyncio.sleep(HELD_S)
            if fails and inside:
                await asyncio.sleep(PAUSE_S)
                await asyncio.sleep(HELD_S)
        if fails and not inside:
            await asyncio.sleep(PAUSE_S)
            async with slots[0]:
                await asyncio.sleep(HELD_S)

    return answering(call)


def keeping_slots():
    return _attempts(inside=True)


def giving_slots_back():
    return _attempts(inside=False)
