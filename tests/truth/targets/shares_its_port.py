"""Binds with SO_REUSEPORT, so that another may bind the same port: `shares_its_port.py [with-one-that-hangs]`.

That one has a full queue and accepts nobody.
"""

import socket
import sys
import threading

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n<h1>Hello, World!</h1>"


def serve(connection: socket.socket) -> None:
    try:
        while connection.recv(65536):
            connection.sendall(ANSWER)
    except OSError:
        pass


def listening(port: int, backlog: int) -> socket.socket:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind(("127.0.0.1", port))
    server.listen(backlog)
    return server


port = 0
if "with-one-that-hangs" in sys.argv:
    hanging = listening(0, 0)
    port = hanging.getsockname()[1]
    first_in_its_queue = socket.create_connection(("127.0.0.1", port))  # a backlog of 0 has room for one
server = listening(port, 100)
print(server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
