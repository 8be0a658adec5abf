"""A server whose behaviour is known, good or bad: `--stack tests/truth/targets/hostile.py`.

The knob `does` chooses; `answer` behaves. Standard library only, one thread per connection.
"""

from __future__ import annotations

import os
import signal
import socket
import socketserver
import sys
import threading
import time

from velodrome.guest.interfaces.socket_blocking import interface
from velodrome.guest.recipe import served_here
from velodrome.guest.stack import Launch, Process, Stack

BEHAVIOURS = (
    "answer",
    "die-at-start",  # a traceback, exit 1
    "answer-wrong",  # status 200, wrong body
    "answer-500",
    "answer-late",  # wrong for the first half second, like a master before its workers are up
    "not-http",
    "trickle",  # one byte a second
    "never-answer",  # takes connections
    "never-listen",
    "die-under-load",  # after 50 answers
    "die-at-once-under-load",  # right when ready, then at the next request
    "ignore-stop",
    "leave-children",  # grandchildren in sessions of their own that ignore SIGTERM
    "print",  # megabytes, without end
    "leave-files",
    "share-port",  # a daemon of its own session also listens on the port (SO_REUSEPORT)
)


def _command(launch: Launch) -> Process:
    return Process(
        ("-m", "velodrome.guest.stacks.hostile", launch.host, str(launch.port), launch.text("does"))
    )


stack = Stack(
    name="hostile",
    title="hostile",
    about="behaves as set",
    interface="socket_blocking",
    concurrency="threads",
    command=_command,
    knobs={"does": "answer"},
    choices={"does": BEHAVIOURS},
)

state = {"answers": 0}


class Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        recipe, _ = served_here()
        body = interface.answer(recipe)
        does = self.server.does  # type: ignore[attr-defined]
        received = b""
        while True:
            while b"\r\n\r\n" not in received:
                piece = self.request.recv(65536)
                if not piece:
                    return
                received += piece
            received = received.partition(b"\r\n\r\n")[2]
            if not self.answer(does, body):
                return

    def answer(self, does: str, body: bytes) -> bool:
        state["answers"] += 1
        if does == "never-answer":
            time.sleep(600)
        if does == "not-http":
            self.request.sendall(b"220 mail.example ESMTP <ready>\r\n")
            return False
        if (does == "die-under-load" and state["answers"] > 50) or (
            does == "die-at-once-under-load" and state["answers"] > 1
        ):
            print("MemoryError: <b>no more</b>", flush=True)
            os._exit(7)
        status = "500 Oops" if does == "answer-500" else "200 OK"
        early = does == "answer-late" and time.monotonic() < state["began"] + 0.5
        if does == "answer-wrong" or early:
            body = b"<script>alert(1)</script>" + body[25:]
        if does == "print":
            sys.stdout.write("x" * 1_000_000 + "\n")
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
        if does == "trickle":
            for byte in head.encode() + body:
                self.request.sendall(bytes([byte]))
                time.sleep(1)
        self.request.sendall(head.encode() + body)
        return True


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 1024
    does = "answer"

    def server_bind(self) -> None:
        if self.does == "share-port":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()


def _daemon() -> None:
    """Leave a process behind that no signal to our group reaches."""
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        while True:
            time.sleep(600)
    os.wait()


def main() -> None:
    host, port, does = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    state["began"] = time.monotonic()  # type: ignore[assignment]
    if does == "die-at-start":
        raise RuntimeError("cannot <i>start</i>: no configuration")
    if does == "never-listen":
        time.sleep(600)
    if does == "ignore-stop":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    if does == "leave-files":
        with open("here", "w") as here, open(os.path.join(os.environ["HOME"], "home"), "w") as home:
            here.write("x")
            home.write("x")
    if does == "print":
        threading.Thread(target=lambda: [print("y" * 100_000) for _ in iter(int, 1)], daemon=True).start()
    Server.does = does
    server = Server((host, port), Handler)
    if does in ("leave-children", "share-port"):
        for _ in range(3):
            _daemon()
    server.serve_forever()


if __name__ == "__main__":
    main()
