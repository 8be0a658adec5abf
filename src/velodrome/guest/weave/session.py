"""An aiohttp client session for a whole process: opened on the running loop, closed when the loop ends."""

from __future__ import annotations

import asyncio
from typing import Any, Optional

from velodrome.guest.weave.loop_end import at_loop_end


class Session:
    """A session belongs to a loop, and a handler is built before there is one; so the first call opens it."""

    def __init__(self, connections: int, timeout_s: float) -> None:
        """Remember the bounds; open nothing. Needs aiohttp installed."""
        import aiohttp

        self._aiohttp = aiohttp
        self._failures = (aiohttp.ClientError, asyncio.TimeoutError)
        self._connections = connections
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: Optional[Any] = None

    async def ask(self, url: str) -> int:
        """Fetch a URL whole and return its status; 0 if there was no answer."""
        session = self._session or self._open()
        try:
            async with session.get(url) as answer:
                await answer.read()
                return int(answer.status)
        except self._failures:
            return 0

    def _open(self) -> Any:
        aiohttp = self._aiohttp
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=self._timeout,
        )
        at_loop_end(self._close)
        return self._session

    async def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()
