"""Answers as soon as it has the head of a request; reads the body afterwards, slowly, and throws it away."""

import socket
import threading
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n<h1>Hello, World!</h1>"


def serve(connection: socket.socket) -> None:
    try:
        while head := connection.recv(4096):
            size = int(head.lower().split(b"content-length:")[1].split()[0])
            connection.sendall(ANSWER)
            left = size - len(head.split(b"\r\n\r\n", 1)[1])
            time.sleep(0.02)
            while left > 0:
                left -= len(connection.recv(min(left, 65536)))
    except (OSError, IndexError):
        pass


server = socket.socket()
# A window much smaller than the body, so that the body cannot have been sent when the answer comes.
server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
server.bind(("127.0.0.1", 0))
server.listen(100)
print(server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
