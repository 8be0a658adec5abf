"""A server that says how far it is: `python counting_server.py [KIND]` prints its port, then a line each 100 answers.

right: answers every request at once. moved: with a redirect. moody: ends every second connection without an answer.
"""

import itertools
import socket
import sys
import threading

ANSWERS = {
    "right": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "moved": b"HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n",
    "moody": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
}
counted = itertools.count(1)


def serve(peer: socket.socket, answer: bytes) -> None:
    with peer:
        while peer.recv(65_536):
            peer.sendall(answer)
            # Of C, so that no two threads get the same.
            if (number := next(counted)) % 100 == 0:
                print(number, flush=True)


if __name__ == "__main__":
    kind = sys.argv[1] if sys.argv[1:] else "right"
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    print(listener.getsockname()[1], flush=True)
    for accepted in itertools.count():
        peer = listener.accept()[0]
        if kind == "moody" and accepted % 2:
            peer.recv(65_536)
            peer.close()
            continue
        threading.Thread(target=serve, args=(peer, ANSWERS[kind]), daemon=True).start()
