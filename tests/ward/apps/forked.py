"""A stack of the ward: processes on one listening socket, whose event loop was made before the fork, or in each.

Each answers by a WSGI app, one request after the other.
"""

import argparse
import asyncio
import importlib
import os
import signal
import socket
import sys

from velodrome.guest.stack import Process, Stack, one_per_worker


def _command(launch):
    words = ("--port", str(launch.port), "--workers", launch.text("workers"), "--loop", launch.text("loop"))
    # By its path: the copy of the guest folder does not have it.
    code = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    return Process(("-c", code, os.path.abspath(__file__), *words, launch.app))


stack = Stack(
    name="forked",
    title="asyncio · forked",
    about="Forked processes with an event loop each, or with one that was made before.",
    interface="wsgi",
    concurrency="sync",
    command=_command,
    knobs={"workers": 2, "loop": "before"},
    choices={"loop": ("before", "after")},
    slots=one_per_worker,
)


def saying(begun):
    """Return what an app begins its answer with."""
    return lambda status, headers: begun.extend((status, headers))


def answering(app):
    """Return what answers the requests of a connection."""

    async def handle(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, _ = head.decode("latin-1").split(" ", 2)
                begun = []
                body = b"".join(app({"REQUEST_METHOD": method, "PATH_INFO": path}, saying(begun)))
                status, headers = begun
                lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers), "", ""]
                writer.write("\r\n".join(lines).encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    return handle


def main():
    """Serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--loop")
    parser.add_argument("app")
    given = parser.parse_args()
    sys.path.insert(0, os.getcwd())
    module, _, name = given.app.partition(":")
    handle = answering(getattr(importlib.import_module(module), name))
    listener = socket.create_server(("127.0.0.1", given.port), backlog=1024)
    before = given.loop == "before"
    loop = asyncio.new_event_loop() if before else None
    if before:
        loop.run_until_complete(asyncio.start_server(handle, sock=listener))
    children = []
    for _ in range(given.workers):
        child = os.fork()
        if not child:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if not before:
                loop = asyncio.new_event_loop()
                loop.run_until_complete(asyncio.start_server(handle, sock=listener))
            asyncio.set_event_loop(loop)
            loop.run_forever()
        children.append(child)

    def end(number, frame):
        for child in children:
            os.kill(child, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
