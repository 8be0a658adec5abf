"""Serves one connection for as long as it lives, others wait in a queue: `one_at_a_time.py BACKLOG`."""

import socket
import sys

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n<h1>Hello, World!</h1>"

server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen(int(sys.argv[1]))
print(server.getsockname()[1], flush=True)
while True:
    connection, _ = server.accept()
    try:
        while data := connection.recv(65536):
            connection.sendall(ANSWER * data.count(b"\r\n\r\n"))
    except OSError:
        pass
    connection.close()
