"""Answers 500 to every n-th request of a connection: `fails_sometimes.py N`."""

import socket
import sys
import threading

GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n<h1>Hello, World!</h1>"
BAD = b"HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops"
EVERY = int(sys.argv[1])


def serve(connection: socket.socket) -> None:
    number = 0
    try:
        while connection.recv(65536):
            number += 1
            connection.sendall(GOOD if number % EVERY else BAD)
    except OSError:
        pass


server = socket.create_server(("127.0.0.1", 0), backlog=100)
print(server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
