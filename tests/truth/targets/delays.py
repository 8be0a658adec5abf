"""Answers each request a known time after it came: `delays.py MS [SLOWER_MS_EACH_SECOND]`."""

import asyncio
import sys
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n<h1>Hello, World!</h1>"
DELAY_S = float(sys.argv[1]) / 1e3
SLOWER_S = float(sys.argv[2]) / 1e3 if len(sys.argv) > 2 else 0.0
began = 0.0


class Delayed(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.rest = b""

    def data_received(self, data: bytes) -> None:
        global began  # noqa: PLW0603 - one program, one clock
        began = began or time.monotonic()
        *whole, self.rest = (self.rest + data).split(b"\r\n\r\n")
        for _ in whole:
            delay_s = DELAY_S + SLOWER_S * (time.monotonic() - began)
            if delay_s:
                asyncio.get_running_loop().call_later(delay_s, self.answer)
            else:
                self.answer()

    def answer(self) -> None:
        assert isinstance(self.transport, asyncio.Transport)
        if not self.transport.is_closing():
            self.transport.write(ANSWER)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Delayed, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
