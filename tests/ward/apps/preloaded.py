"""`fork-after-init`: a pool whose thread was started at import, before gunicorn forks; cured by one in each worker."""

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLateError
from contextlib import suppress

from plain import saying

PATIENCE_S = 0.25
first = ThreadPoolExecutor(1)
first.submit(int).result()
later = []


def price():
    return 42


def asking(pool):
    def wait(environ):
        with suppress(TooLateError):  # without a price, then
            pool().submit(price).result(timeout=PATIENCE_S)

    return wait


def of_worker():
    if not later:
        later.append(ThreadPoolExecutor(1))
    return later[0]


severe, cured = saying(asking(lambda: first)), saying(asking(of_worker))
