"""Locks of asyncio at one place of an app, with a pause before each is given back, or as long a pause after that.

    {"locks-longer": {"file": "/srv/shop/prices.py", "function": "call", "seconds": 0.01, "held": true}}

Tasks that follow each other through the lock wait for every pause in which it is held, and for none of those behind it
but their own.
"""

from __future__ import annotations

import sys
from typing import Any, Mapping

from velodrome.guest.injected.giving import Giving, Treatments

TOOK = "locks-longer"


def _locks_longer(giving: Giving, how: Mapping[str, Any]) -> None:
    """Have `async with lock` in one function go on so many seconds later, with the lock `held` or given back."""
    place = how["file"], how["function"]

    def patch(module: Any) -> None:
        import asyncio

        before = module.Lock.__aexit__

        async def leave(self: Any, *raised: Any) -> Any:
            code = sys._getframe(1).f_code
            meant = (code.co_filename, code.co_name) == place
            if meant:
                giving.took(TOOK)
                if how["held"]:
                    await asyncio.sleep(how["seconds"])
            left = await before(self, *raised)
            if meant and not how["held"]:
                await asyncio.sleep(how["seconds"])
            return left

        module.Lock.__aexit__ = leave

    giving.finder.after("asyncio.locks", patch)


TREATMENTS: Treatments = {TOOK: _locks_longer}
