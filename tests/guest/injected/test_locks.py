"""A lock at one place is held longer, or as long a pause follows: only who waits for the lock can tell which."""

import pytest
from tests.guest.injected.conftest import Injected

PROGRAM = """
    import asyncio, time, shop

    async def main():
        for calls in (shop.in_turn, shop.beside):
            began, turn = time.monotonic(), asyncio.Lock()
            await asyncio.gather(*(calls(turn) for _ in range(4)))
            print(round(10 * (time.monotonic() - began)), end=" ")

    asyncio.run(main())
"""
SHOP = """
async def in_turn(turn):
    async with turn:
        pass
async def beside(turn):
    async with turn:
        pass
"""


@pytest.mark.parametrize(("held", "tenths"), [(True, "4 0"), (False, "1 0")])
def test_tasks_wait_for_each_others_pauses_where_the_lock_is_held_meanwhile(
    injected: Injected, held: bool, tenths: str
) -> None:
    (injected.app / "shop.py").write_text(SHOP)
    where = {"file": str(injected.app / "shop.py"), "function": "in_turn"}
    give = {"locks-longer": {**where, "seconds": 0.1, "held": held}}
    assert injected.run(PROGRAM, give) == f"{tenths} "
    assert injected.took() == {"locks-longer"}


def test_what_takes_no_such_lock_does_not_meet_it(injected: Injected) -> None:
    (injected.app / "shop.py").write_text(SHOP)
    where = {"file": str(injected.app / "shop.py"), "function": "elsewhere"}
    injected.run(PROGRAM, {"locks-longer": {**where, "seconds": 0.1, "held": True}})
    assert injected.took() == set()
