"""Clients that come and go before the load, so that no server meets its first one while it is measured.

asyncio's transports receive into 256 KiB, which the C library maps and unmaps for every request, until one such
buffer was freed whole: then it keeps them (mallopt(3), M_MMAP_THRESHOLD). That is so at the end of a connection.
A server in use has seen many; one that was just started has not, and would spend twice the CPU on the whole of its
first load, and on that alone.
"""

import socket
from contextlib import ExitStack, suppress
from urllib.parse import urlsplit

EACH = 8
"""Connections for each worker: whichever wakes takes one, and a worker that gets none pays as said above."""
PATIENCE_S = 2.0
"""For one connection, round trip included: who does not take it in time is not waited for."""


def make(url: str, workers: int = 1) -> None:
    """Connect to the server of `url`, all at once, say nothing, and go. What becomes of them is of no interest."""
    parts = urlsplit(url)
    with ExitStack() as opened, suppress(OSError):
        for _ in range(EACH * workers):
            address = parts.hostname or "", parts.port or 80
            opened.enter_context(socket.create_connection(address, PATIENCE_S))
