"""A server that clients of HTTP/1.0 and 1.1 both keep connections to; prints its port.

    keeps_alive.py [--fail N] [--delay MS] [--hang-up N]

Answers 500 to every N-th request, after MS milliseconds, and resets every N-th connection after its request.
"""

import argparse
import asyncio
import itertools
import socket
import struct

parser = argparse.ArgumentParser()
for option in ("--fail", "--delay", "--hang-up"):
    parser.add_argument(option, type=int, default=0)
options = parser.parse_args()
BODY = b"<h1>Hello, World!</h1>"
requests, connections = itertools.count(1), itertools.count(1)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    hangs_up = options.hang_up and next(connections) % options.hang_up == 0
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
            await reader.readexactly(int(length or 0))
            if options.delay:
                await asyncio.sleep(options.delay / 1000)
            if hangs_up:
                writer.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                writer.transport.abort()
                return
            bad = options.fail and next(requests) % options.fail == 0
            body = b"oops" if bad else BODY
            keep = b"keep-alive" in head or (b"http/1.1" in head and b"connection: close" not in head)
            writer.write(
                b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n%s"
                % (b"500 Oops" if bad else b"200 OK", len(body), b"keep-alive" if keep else b"close", body)
            )
            await writer.drain()
            if not keep:
                break
    except (OSError, asyncio.IncompleteReadError):
        pass
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
