"""A server that writes down which request came, and when."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Counted:
    """What came, on its own thread."""

    def __init__(self) -> None:
        self.came: list[tuple[str, int]] = []
        """Path and nanoseconds of the monotonic clock."""
        self.url = ""

    @property
    def paths(self) -> list[str]:
        """Which requests came."""
        return [path for path, _ in self.came]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.came.append((head.split(b" ", 2)[1].decode(), time.monotonic_ns()))
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        writer.close()

    async def _run(self, ready: threading.Event) -> None:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        ready.set()
        await self._end.wait()


@contextmanager
def counting() -> Iterator[Counted]:
    """Serve on loopback."""
    found, ready = Counted(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(found._run(ready)))
    thread.start()
    ready.wait()
    try:
        yield found
    finally:
        found._loop.call_soon_threadsafe(found._end.set)
        thread.join()
