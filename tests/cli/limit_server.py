"""Servers with a known limit: `python limit_server.py KIND [HOST]` prints its port and serves until it is ended.

cpu: one thread that computes 200 us for each answer. slots: two threads that wait 5 ms for each, and no more. deaf:
takes connections and 64 kB of each request a second. moody: answers every tenth request with an error. reads: takes
every request and answers at once. large: the same, with 50 kB.
"""

import itertools
import selectors
import socket
import sys
import threading
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
LARGE = b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n" + b"x" * 50_000
ERROR = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 2\r\n\r\nno"
SLOTS = threading.Semaphore(2)


def compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def serve(kind: str, peer: socket.socket) -> None:
    with peer:
        for number in itertools.count(1):
            if not peer.recv(65_536):
                return
            if kind == "slots":
                with SLOTS:
                    time.sleep(0.005)
            elif kind == "deaf":
                time.sleep(1)
                continue
            peer.sendall(ERROR if kind == "moody" and number % 10 == 0 else ANSWER)


def read_whole(peer: socket.socket, answer: bytes) -> None:
    """Answer each request when its body is there."""
    with peer, peer.makefile("rb") as lines:
        while lines.readline():
            length = 0
            while (line := lines.readline().strip().lower()) != b"":
                name, _, value = line.partition(b":")
                length = int(value) if name == b"content-length" else length
            lines.read(length)
            peer.sendall(answer)


def compute_for_all(listener: socket.socket) -> None:
    """Answer all connections from one thread."""
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is listener:
                    selector.register(listener.accept()[0], selectors.EVENT_READ)
                    continue
                peer = key.fileobj
                assert isinstance(peer, socket.socket)
                try:
                    data = peer.recv(65_536)
                    if data:
                        compute(200e-6)
                        peer.sendall(ANSWER)
                except ConnectionError:
                    data = b""
                if not data:
                    selector.unregister(peer)
                    peer.close()


if __name__ == "__main__":
    kind = sys.argv[1]
    host = sys.argv[2] if sys.argv[2:] else "127.0.0.1"
    listener = socket.create_server((host, 0), backlog=512)
    print(listener.getsockname()[1], flush=True)
    if kind == "cpu":
        compute_for_all(listener)
    readers = {"reads": ANSWER, "large": LARGE}
    while True:
        peer = listener.accept()[0]
        if kind in readers:
            threading.Thread(target=read_whole, args=(peer, readers[kind]), daemon=True).start()
        else:
            threading.Thread(target=serve, args=(kind, peer), daemon=True).start()
