"""`background-work`: a thread that computes again and again for a part of the time; cured by a process."""

import multiprocessing
import threading
import time

from answering import answering

ROWS = 60_000


def rank():
    return sorted((number * 7919 % 10_007, number) for number in range(ROWS))


def refresh(pause_s):
    while True:
        rank()
        time.sleep(pause_s)


async def compute():
    sum(number * number for number in range(20_000))


def severe():
    threading.Thread(target=refresh, args=(0.02,), daemon=True).start()
    return answering(compute)


def mild():
    threading.Thread(target=refresh, args=(0.1,), daemon=True).start()
    return answering(compute)


def cured():
    multiprocessing.get_context("fork").Process(target=refresh, args=(0.1,), daemon=True).start()
    return answering(compute)


def now_and_then():
    """A decoy: a thread that is woken often, and has next to nothing to do."""

    def poll():
        while True:
            time.sleep(0.01)

    threading.Thread(target=poll, daemon=True).start()
    return answering(compute)
