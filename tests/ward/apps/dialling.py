"""`ports-exhausted`: a connection for each call of a third party; cured by connections that are kept."""

import asyncio
import os
from urllib.parse import urlsplit

from answering import answering

place = urlsplit(os.environ["PAYMENTS_URL"])
REQUEST = f"GET / HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode()
kept = []


async def call(connection):
    reader, writer = connection or await asyncio.open_connection(place.hostname, place.port)
    writer.write(REQUEST)
    head = await reader.readuntil(b"\r\n\r\n")
    (length,) = (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
    await reader.readexactly(int(length.split(b":")[1]))
    return reader, writer


async def with_a_connection_each():
    _, writer = await call(None)
    writer.close()


async def with_connections_kept():
    kept.append(await call(kept.pop() if kept else None))


severe, cured = map(answering, (with_a_connection_each, with_connections_kept))
