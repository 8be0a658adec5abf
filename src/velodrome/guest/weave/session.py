"""An aiohttp client session for a whole process: opened on the running loop, closed when the loop ends."""

from __future__ import annotations

import asyncio
from typing import Any, Optional


class Session:
    """A session belongs to a loop, and a handler is built before there is one; so the first call opens it.

    No server has the same hook for closing it, but all end by cancelling what still runs on the loop:
    a task that waits for nothing else closes the session then, whoever serves.
    """

    def __init__(self, connections: int, timeout_s: float) -> None:
        """Remember the bounds; open nothing. Needs aiohttp installed."""
        import aiohttp

        self._aiohttp = aiohttp
        self._failures = (aiohttp.ClientError, asyncio.TimeoutError)
        self._connections = connections
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: Optional[Any] = None
        self._keeper: Optional["asyncio.Task[None]"] = None

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
        self._keeper = asyncio.get_running_loop().create_task(self._keep(self._session))
        return self._session

    async def _keep(self, session: Any) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await session.close()
            self._session = None
