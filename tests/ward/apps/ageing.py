"""`slows-with-age`: each request adds to what all go through, or a cancelled one keeps its slot; cured by an end."""

import asyncio
from contextlib import suppress

from answering import answering

SLOTS, DEADLINE_S, CALL_S = 16, 0.2, 0.01


def going_through(most=None):
    seen = []

    async def remember():
        sum(1 for one in seen if one < 0)
        seen.extend(range(8))
        del seen[: -most if most else 0]

    return answering(remember)


def bounded():
    return going_through(1000)


def _called(gives_back):
    """Return an app whose call of 300 takes longer than its deadline."""
    free, numbers = [], iter(range(1, 10**9))

    async def call(number):
        await free[0].acquire()
        try:
            await asyncio.sleep(CALL_S if number % 300 else 2 * DEADLINE_S)
        except Exception:
            free[0].release()
            raise
        except BaseException:
            if gives_back:
                free[0].release()
            raise
        free[0].release()

    async def within_a_deadline():
        free.append(asyncio.Semaphore(SLOTS)) if not free else None
        with suppress(TimeoutError):
            await asyncio.wait_for(call(next(numbers)), DEADLINE_S)

    return answering(within_a_deadline)


def keeping_slots():
    return _called(gives_back=False)


def giving_back():
    return _called(gives_back=True)
