"""What the awaiting clients share: a pool opened on the running loop, closed when the loop ends."""

from __future__ import annotations

import asyncio
from typing import Any, Awaitable, Callable, Optional

from velodrome.guest.workers import at_loop_end


class OnLoop:
    """A pool belongs to a loop, and a handler is built before there is a loop; so the first request opens it."""

    def __init__(self, make: Callable[[], Awaitable[Any]], close: Callable[[Any], Awaitable[Any]]) -> None:
        """Open nothing yet."""
        self._make, self._close = make, close
        self._opening: "Optional[asyncio.Future[Any]]" = None
        self._pool: Any = None

    async def pool(self) -> Any:
        """Return the pool; requests that come while it is being opened wait for the request that opens it."""
        if self._pool is not None:
            return self._pool
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open())
        # Shielded: the client of the request that came first may go, and those behind it still want the pool.
        return await asyncio.shield(self._opening)

    async def _open(self) -> Any:
        try:
            self._pool = await self._make()
        finally:
            self._opening = None
        at_loop_end(self._end)
        return self._pool

    async def _end(self) -> None:
        pool, self._pool = self._pool, None
        await self._close(pool)
