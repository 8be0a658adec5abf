"""Servers with a known limit: `python limit_server.py KIND` prints its port and serves until it is ended.

cpu: one thread that computes 200 us for each answer. slots: two threads that wait 5 ms for each, and no more. deaf:
takes connections and 64 kB of each request a second.
"""

import selectors
import socket
import sys
import threading
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
SLOTS = threading.Semaphore(2)


def compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def serve(kind: str, peer: socket.socket) -> None:
    with peer:
        while peer.recv(65_536):
            if kind == "slots":
                with SLOTS:
                    time.sleep(0.005)
            elif kind == "deaf":
                time.sleep(1)
                continue
            peer.sendall(ANSWER)


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
                    asked = peer.recv(65_536)
                    if asked:
                        compute(200e-6)
                        peer.sendall(ANSWER)
                except ConnectionError:
                    asked = b""
                if not asked:
                    selector.unregister(peer)
                    peer.close()


if __name__ == "__main__":
    kind = sys.argv[1]
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    print(listener.getsockname()[1], flush=True)
    if kind == "cpu":
        compute_for_all(listener)
    while True:
        threading.Thread(target=serve, args=(kind, listener.accept()[0]), daemon=True).start()
