"""Answers one request a connection, closes it and rests: `closes_each_time.py BACKLOG PAUSE_MS`."""

import socket
import sys
import time

ANSWER = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 22\r\n\r\n<h1>Hello, World!</h1>"

server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen(int(sys.argv[1]))
print(server.getsockname()[1], flush=True)
while True:
    connection, _ = server.accept()
    try:
        if connection.recv(65536):
            connection.sendall(ANSWER)
    except OSError:
        pass
    connection.close()
    time.sleep(float(sys.argv[2]) / 1e3)
