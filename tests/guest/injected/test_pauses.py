"""Pauses of requests: followed by the line of the app's own code that makes them, and made shorter there only."""

import json

import pytest
from tests.guest.injected.conftest import Injected

SHOP = """
import asyncio, time, threading
from library import wait_a_moment

def take():
    time.sleep(0.1)

def ask():
    wait_a_moment(0.1)

async def look():
    await asyncio.sleep(0.1)

def beside():
    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
"""
LIBRARY = "import time\ndef wait_a_moment(seconds): time.sleep(seconds)\n"
PROGRAM = """
    import asyncio, os, sys, time
    sys.path.insert(0, os.path.join(os.getcwd(), "site-packages"))
    import shop
    for call in (shop.take, shop.ask, lambda: asyncio.run(shop.look()), shop.beside):
        began = time.monotonic()
        call()
        print("short" if time.monotonic() - began < 0.09 else "long", end=" ")
    {after}
"""
LINES = {"take": 6, "ask": 9, "look": 12}


def prepared(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(SHOP)
    (injected.app / "site-packages").mkdir()
    (injected.app / "site-packages" / "library.py").write_text(LIBRARY)


@pytest.mark.parametrize("function", LINES)
def test_pauses_of_one_line_are_shorter_and_no_other_ones(injected: Injected, function: str) -> None:
    prepared(injected)
    give = {"pauses-shorter": {"file": str(injected.app / "shop.py"), "line": LINES[function], "times": 0.1}}
    expected = ["short" if name == function else "long" for name in (*LINES, "beside")]
    assert injected.run(PROGRAM.format(after=""), give).split() == expected
    assert injected.took() == {"pauses-shorter"}


def test_a_heartbeat_follows_pauses_by_the_apps_own_lines_and_for_how_long(injected: Injected) -> None:
    prepared(injected)
    injected.run(PROGRAM.format(after="time.sleep(1)"), {"heartbeat": {"late_s": 0.01}})
    (file,) = injected.seen.glob("heart-*.jsonl")
    sent = [one for line in file.read_text().splitlines() for one in json.loads(line).get("pauses", ())]
    pauses: dict[int, float] = {}
    for one in sent:
        if one["file"].endswith("shop.py"):
            pauses[one["line"]] = pauses.get(one["line"], 0.0) + one["seconds"]
    assert pauses.keys() == set(LINES.values())
    assert all(0.1 <= seconds < 0.3 for seconds in pauses.values())
