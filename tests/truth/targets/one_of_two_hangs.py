"""Two listeners on one port: the first has a full queue and accepts nobody, the second serves whoever comes to it."""

import socket
import threading

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 22\r\n\r\n<h1>Hello, World!</h1>"


def listening(port: int, backlog: int) -> socket.socket:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind(("127.0.0.1", port))
    server.listen(backlog)
    return server


def serve(connection: socket.socket) -> None:
    while data := connection.recv(65536):
        connection.sendall(ANSWER * data.count(b"\r\n\r\n"))


hanging = listening(0, 0)
port = hanging.getsockname()[1]
first_in_its_queue = socket.create_connection(("127.0.0.1", port))  # a backlog of 0 has room for one
server = listening(port, 100)
print(port, flush=True)
while True:
    connection, _ = server.accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
