"""Threads that an app starts compute twice as much before they wait; all other threads as much as before."""

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
    print(round(shop.used_s[0] / shop.COMPUTES_S), end=" ")
"""
SHOP = """
import threading, time

COMPUTES_S, used_s = 0.1, []

def compute():
    until = time.thread_time() + COMPUTES_S
    while time.thread_time() < until: pass

def work():
    time.sleep(0.01)
    before = time.thread_time()
    compute()
    WAIT
    used_s.append(time.thread_time() - before)

class Worker(threading.Thread):
    def run(self):
        work()
"""
WAITS = ("time.sleep(0.01)", "threading.Event().wait(0.01)")


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize(
    "begin",
    [
        "threading.Thread(target=shop.work).start()",
        "shop.Worker().start()",
        "threading.Timer(0, shop.work).start()",
    ],
)
def test_a_thread_that_the_app_starts_computes_as_much_again_before_it_waits(
    injected: Injected, wait: str, begin: str
) -> None:
    (injected.app / "shop.py").write_text(SHOP.replace("WAIT", wait))
    assert injected.run(PROGRAM.format(begin=begin), {"background-longer": 2}) == "2 "
    assert injected.took() == {"background-longer"}


@pytest.mark.parametrize(
    "begin", ["shop.work()", "ThreadPoolExecutor(1).submit(shop.work).result(); raise SystemExit"]
)
def test_what_a_pool_or_the_first_thread_computes_is_let_alone(injected: Injected, begin: str) -> None:
    (injected.app / "shop.py").write_text(SHOP.replace("WAIT", WAITS[0]))
    injected.run(PROGRAM.format(begin=begin), {"background-longer": 2})
    assert injected.took() == set()
