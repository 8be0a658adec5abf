"""Stacks of a user's own with a fault planted in them: a tiny WSGI server whose workers each listen on the port."""

from pathlib import Path

FAULTS = {
    "none": "",
    # Every request holds up its worker, from so many workers on.
    "collapses": "if options.workers >= {at}: time.sleep(0.004)",
    # A request that is alone waits, as for a delayed acknowledgement: at a low rate, and not in a closed loop.
    "slow": "if options.workers >= {at} and in_flight == 1: await asyncio.sleep(0.04)",
    # Only what is not the first on its connection waits.
    "slow-when-reused": "if options.workers >= {at} and number > 0: await asyncio.sleep(0.04)",
    "fails": "if options.workers >= {at} and served % 5 == 0: status = '500 Internal Server Error'",
    "idles": "",
}

FILE = '''"""A server with a planted fault: {fault}."""

import asyncio
import importlib
import io
import os
import signal
import socket
import time

from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.workers import arguments, with_workers


def command(launch: Launch) -> Process:
    return Process(
        ("-m", __name__, "--app", launch.app, "--host", launch.host, "--port", str(launch.port),
         "--workers", launch.text("workers"))
    )


stack = Stack(
    name="{name}", title="{name}", about="planted", interface="wsgi", concurrency="tasks", command=command,
    knobs={{"workers": 1}},
)


def listener(options):
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    found.bind((options.host, options.port))
    found.listen(2048)
    return found


def main():
    options = arguments(__name__).parse_args()
    module, _, name = options.app.partition(":")
    app = getattr(importlib.import_module(module), name)
    idles = {idles}
    token, gives = os.pipe()  # of several workers, the one that takes it is the only one to listen
    os.write(gives, b"1")
    os.set_blocking(token, False)

    def takes():
        try:
            return bool(os.read(token, 1))
        except BlockingIOError:
            return False

    def work():
        served = in_flight = 0

        async def serve(reader, writer):
            nonlocal served, in_flight
            number = 0
            try:
                while True:
                    head = await reader.readuntil(b"\\r\\n\\r\\n")
                    in_flight += 1
                    status = ""

                    def start(line, headers, exc_info=None):
                        nonlocal status
                        status = line

                    method, path, _ = head.split(b"\\r\\n", 1)[0].decode().split(" ")
                    environ = {{
                        "REQUEST_METHOD": method, "PATH_INFO": path.partition("?")[0], "SCRIPT_NAME": "",
                        "QUERY_STRING": path.partition("?")[2], "SERVER_NAME": "planted", "SERVER_PORT": "80",
                        "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.version": (1, 0), "wsgi.url_scheme": "http",
                        "wsgi.input": io.BytesIO(), "wsgi.errors": io.StringIO(), "wsgi.multithread": False,
                        "wsgi.multiprocess": True, "wsgi.run_once": False,
                    }}
                    body = b"".join(app(environ, start))
                    until = time.perf_counter() + {cost_s}
                    while time.perf_counter() < until:
                        pass
                    served += 1
                    {planted}
                    number += 1
                    in_flight -= 1
                    closes = b"connection: close" in head.lower()
                    last_headers = "Connection: close\\r\\n" if closes else ""
                    last_headers += f"Content-Length: {{len(body)}}\\r\\n\\r\\n"
                    writer.write(f"HTTP/1.1 {{status}}\\r\\n{{last_headers}}".encode() + body)
                    await writer.drain()
                    if closes:
                        break
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                writer.close()

        async def run():
            loop = asyncio.get_running_loop()
            stop = loop.create_future()
            for one in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(one, stop.cancel)
            if not idles or takes():
                await asyncio.start_server(serve, sock=listener(options))
            try:
                await stop
            except asyncio.CancelledError:
                os._exit(0)

        asyncio.run(run())

    with_workers(options.workers, work)


if __name__ == "__main__":
    main()
'''


def plant(folder: Path, name: str, fault: str = "none", at: int = 2, cost_s: float = 0.0) -> str:
    """Write a stack with a fault that shows from `at` workers on; return its path.

    `cost_s` is CPU that each request takes on top: who has less of it leads.
    """
    path = folder / f"{name.replace('-', '_')}.py"
    planted = FAULTS[fault].format(at=at) or "pass"
    path.write_text(
        FILE.format(fault=fault, name=name, planted=planted, cost_s=cost_s, idles=fault == "idles")
    )
    return str(path)


APP = """def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"bought"]
"""
