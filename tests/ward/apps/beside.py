"""`gil-convoy`: a thread that computes beside the event loop; cured by a process."""

import multiprocessing
import threading

from answering import answering


def compute():
    number = 0
    while True:
        number += 1


async def at_once():
    return None


def in_a_thread():
    threading.Thread(target=compute, daemon=True).start()
    return answering(at_once)


def in_a_process():
    multiprocessing.get_context("fork").Process(target=compute, daemon=True).start()
    return answering(at_once)
