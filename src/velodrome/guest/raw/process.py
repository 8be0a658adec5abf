"""What the raw servers share: their command line, their listening socket, and how they end.

python -m velodrome.guest.stacks.socketserver_single velodrome.guest.interfaces.socket_blocking:app
    --host 127.0.0.1 --port 8000 --backlog 1000
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Sequence

from velodrome.guest.stack import Launch, Process
from velodrome.guest.workers import listen


def command(module: str, launch: Launch) -> Process:
    """Return how to run a raw server's module: every knob is an option of the same name."""
    argv = ["-m", module, launch.app, "--host", launch.host, "--port", str(launch.port)]
    for knob in sorted(launch.knobs):
        argv += ["--" + knob, launch.text(knob)]
    return Process(tuple(argv))


def arguments(*counts: str, loops: Sequence[str] = ()) -> argparse.Namespace:
    """Read the command line: app, host, port, the named counts, and with `loops` an event loop, the first by default.

    Exits with status 2 if it is wrong.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("app", help="module:attribute of the handler")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    for count in counts:
        parser.add_argument("--" + count, type=positive, required=True)
    if loops:
        parser.add_argument("--loop", choices=loops, default=loops[0])
    return parser.parse_args()


def positive(text: str) -> int:
    """Read a count. Raises ValueError for what is not one."""
    count = int(text)
    if count < 1:
        raise ValueError(text)
    return count


def family(host: str) -> socket.AddressFamily:
    """Return the address family of a numeric host or a name."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def end_on_sigterm(before: Callable[[], None] = lambda: None) -> None:
    """On SIGTERM run `before` and leave at once, whatever the threads are doing; a forked child only leaves.

    Without the interpreter's own way out: it would wait for pooled threads, whose calls may take long.
    Nothing needs it, as a handler keeps no files.
    """
    owner = os.getpid()

    def leave(number: int, frame: Any) -> None:
        if os.getpid() == owner:
            before()
        sys.stdout.flush()
        os._exit(0)

    signal.signal(signal.SIGTERM, leave)


@contextmanager
def sigterm_held_back() -> Iterator[None]:
    """Let SIGTERM wait: between a fork and the note of its child, nothing would end that child.

    It begins before the server listens: who can connect may end it. Children begin so too, and call
    `sigterm_let_through`.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def sigterm_let_through() -> None:
    """In a child: end at SIGTERM, until there is a handler; what its parent would do is not its own."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])


def open_listener(options: argparse.Namespace) -> socket.socket:
    """Return a listening socket that does not block.

    What it accepts inherits TCP_NODELAY: else a chunk waits for the last one's ACK (40 ms).
    """
    listener = listen(options.host, options.port, options.backlog)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def open_blocking_listener(options: argparse.Namespace) -> socket.socket:
    """Return one whose `accept` waits for the next connection."""
    listener = open_listener(options)
    listener.setblocking(True)
    return listener


def accept_waiting(listener: socket.socket) -> Iterator[socket.socket]:
    """Yield all connections that wait to be accepted, set not to block."""
    while True:
        try:
            connected = listener.accept()[0]
        except (BlockingIOError, ConnectionAbortedError):
            return
        connected.setblocking(False)
        yield connected
