"""A fast server that notes the number of each request, `/N`, and when the kernel got it.

Of a request `/N?L`, the number is N + L · 2³²: so a load that gives its number is kept apart from those before it. What
a process sent while its network was cut, the kernel delivers long after that process has ended.

Its arguments: the address to listen on. It prints its port; then `many` is answered with a count, and the name of a
file is answered once numbers and moments are written there in turn, eight bytes each.
"""

import os
import select
import socket
import struct
import sys
import time
from array import array

SO_TIMESTAMPNS = 35
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
ROOM = socket.CMSG_SPACE(16)


def moment(beside: "list[tuple[int, int, bytes]]") -> int:
    """Return when the kernel got it; what came before the kernel began to stamp, came now. Nanoseconds since 1970."""
    if not beside:
        return time.time_ns()
    seconds, rest = struct.unpack("qq", beside[0][2])
    return int(seconds) * 1_000_000_000 + int(rest)


def number_of(request: bytes) -> int:
    """Return the number of a request."""
    number, _, load = request[request.index(b"/") + 1 : request.index(b" HTTP")].partition(b"?")
    return int(number) + (int(load or 0) << 32)


def main() -> None:
    """Serve until standard input ends."""
    came, open_ = array("Q"), {}
    listening = socket.create_server((sys.argv[1], 0), backlog=4096)
    listening.setblocking(False)
    # Connections inherit it. The kernel begins to stamp a little after the first socket wants it.
    listening.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    poll = select.epoll()
    poll.register(listening, select.EPOLLIN)
    poll.register(0, select.EPOLLIN)
    print(listening.getsockname()[1], flush=True)
    while True:
        for number, _ in poll.poll():
            if number == listening.fileno():
                connection, _ = listening.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                open_[connection.fileno()] = connection
                poll.register(connection, select.EPOLLIN)
            elif number == 0:
                if not (line := os.read(0, 4096).decode().strip()):
                    return
                if line != "many":
                    with open(line, "wb") as file:
                        came.tofile(file)
                print(len(came) // 2, flush=True)
                if line != "many":
                    del came[:]
            else:
                connection = open_[number]
                try:
                    data, beside, _, _ = connection.recvmsg(8192, ROOM)
                    if data:
                        came.append(number_of(data))
                        came.append(moment(beside))
                        connection.send(ANSWER)
                        continue
                except ConnectionError:
                    pass
                del open_[number]
                connection.close()


if __name__ == "__main__":
    main()
