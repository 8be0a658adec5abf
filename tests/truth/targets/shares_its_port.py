"""Binds with SO_REUSEPORT, so that a stranger may bind the same port."""

import socket
import threading

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n<h1>Hello, World!</h1>"


def serve(connection: socket.socket) -> None:
    try:
        while connection.recv(65536):
            connection.sendall(ANSWER)
    except OSError:
        pass


server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
server.bind(("127.0.0.1", 0))
server.listen(100)
print(server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
