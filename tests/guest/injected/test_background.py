"""Threads that an app starts rest before they wait, for as long as it is said; all other threads go on as before."""

import pytest
from tests.guest.injected.conftest import Injected

PROGRAM = """
    import threading, time
    from concurrent.futures import ThreadPoolExecutor
    import shop

    done = threading.Event()
    {begin}
    while threading.active_count() > 1:
        threading.Event().wait(0.01)
    print(shop.took_s[0] >= 9.9 * shop.COMPUTES_S)
"""
SHOP = """
import queue, threading, time

FULL = queue.Queue(); FULL.put(1)
COMPUTES_S, took_s = 0.1, []

def compute():
    until = time.thread_time() + COMPUTES_S
    while time.thread_time() < until: pass

def work():
    time.sleep(0.01)
    began = time.monotonic()
    compute()
    WAIT
    took_s.append(time.monotonic() - began)

class Worker(threading.Thread):
    def run(self):
        work()
"""
WAITS = ("time.sleep(0.01)", "threading.Event().wait(0.01)", "FULL.get()")


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize(
    "begin",
    [
        "threading.Thread(target=shop.work).start()",
        "shop.Worker().start()",
        "threading.Timer(0, shop.work).start()",
    ],
)
def test_a_thread_that_the_app_starts_rests_before_it_waits(
    injected: Injected, wait: str, begin: str
) -> None:
    (injected.app / "shop.py").write_text(SHOP.replace("WAIT", wait))
    assert injected.run(PROGRAM.format(begin=begin), {"background-rests": 9}) == "True\n"
    assert injected.took() == {"background-rests"}


@pytest.mark.parametrize(
    "begin", ["shop.work()", "ThreadPoolExecutor(1).submit(shop.work).result(); raise SystemExit"]
)
def test_a_pools_threads_and_the_first_one_do_not_rest(injected: Injected, begin: str) -> None:
    (injected.app / "shop.py").write_text(SHOP.replace("WAIT", WAITS[0]))
    injected.run(PROGRAM.format(begin=begin), {"background-rests": 9})
    assert injected.took() == set()
