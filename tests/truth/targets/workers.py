"""A master and two workers on one socket, with a fault to choose: `workers.py FAULT`.

equal           none
one-takes-all   the second worker never accepts
one-polls       the second worker never accepts and asks for connections without a pause
one-dies        the second worker ends a second after its first connection
one-restarts    the same, and the master starts another
master-dies     the master kills its workers and itself a second after it began
"""

import os
import selectors
import signal
import socket
import sys
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n<h1>Hello, World!</h1>"
FAULT = sys.argv[1]

server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen(2048)
server.setblocking(False)


def work(number: int) -> None:
    selector = selectors.DefaultSelector()
    faulty = number == 1
    if not (faulty and FAULT in ("one-takes-all", "one-polls")):
        selector.register(server, selectors.EVENT_READ)
    ends = float("inf")
    while time.monotonic() < ends:
        for key, _ in selector.select(0 if faulty and FAULT == "one-polls" else 0.05):
            if key.fileobj is server:
                try:
                    connection, _ = server.accept()
                except BlockingIOError:
                    continue
                connection.setblocking(False)
                selector.register(connection, selectors.EVENT_READ)
                # One connection at a time, or the first worker to wake would take them all.
                time.sleep(0.002)
                if faulty and FAULT in ("one-dies", "one-restarts"):
                    ends = min(ends, time.monotonic() + 1.0)
                continue
            assert isinstance(key.fileobj, socket.socket)
            try:
                data = key.fileobj.recv(65536)
                key.fileobj.sendall(ANSWER * data.count(b"\r\n\r\n"))
            except OSError:
                data = b""
            if not data:
                selector.unregister(key.fileobj)
                key.fileobj.close()


def start(number: int) -> int:
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        work(number)
        os._exit(0)
    return pid


workers = [start(0), start(1)]
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
print(server.getsockname()[1], flush=True)
try:
    if FAULT == "master-dies":
        sys.stdin.readline()
        time.sleep(1.0)
        os._exit(7)
    while True:
        pid, _ = os.wait()
        workers.remove(pid)
        if FAULT == "one-restarts":
            workers.append(start(2))
finally:
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
