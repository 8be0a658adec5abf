"""The process that holds idle connections: `python -m velodrome.run.idle_process --cpus 1 --user ""`.

The first line of standard input is the work (JSON: host, port, count, open_s); once the connections are open,
or time is up, `{"opened": N}` is answered. Each further line is answered with `{"still_open": N}`. The end of
standard input, which is also the end of whoever started us, closes them all.
"""

import errno
import json
import select
import selectors
import socket
import sys
import time
from collections.abc import Sequence

from velodrome.run.supervision import own_process

AT_ONCE = 64
"""Connections in the making: fewer than the shortest listen queue that is a default (100, asyncio's)."""
SPARE = 64
"""Descriptors for everything else."""
LEFT = getattr(select, "POLLRDHUP", 0)
"""Reported, with errors, when the other side has ended: also behind data that nobody reads. Linux only."""


def main() -> int:
    """Open, answer questions, close at the end of standard input."""
    own_process.pin()
    own_process.give_up_root()
    work = json.loads(sys.stdin.readline())
    own_process.raise_limit("RLIMIT_NOFILE", work["count"] + SPARE)
    held = open_all(work["host"], work["port"], work["count"], work["open_s"])
    tell({"opened": len(held)})
    for _ in sys.stdin:
        tell({"still_open": sum(map(is_open, held))})
    return 0


def tell(facts: dict[str, int]) -> None:
    """Answer one line."""
    print(json.dumps(facts), flush=True)


def open_all(host: str, port: int, count: int, open_s: float) -> list[socket.socket]:
    """Open connections till there are `count`, this machine gives no more, or time is up."""
    until = time.monotonic() + open_s
    opened: list[socket.socket] = []
    tries = count
    with selectors.DefaultSelector() as making:
        while (left := until - time.monotonic()) > 0 and len(opened) < count:
            while tries and len(making.get_map()) < min(AT_ONCE, count - len(opened)):
                tries -= 1
                begun = begin(host, port)
                if begun is None:
                    tries = 0
                    break
                making.register(begun, selectors.EVENT_WRITE)
            if not making.get_map():
                break
            for key, _ in making.select(left):
                connected = key.fileobj
                assert isinstance(connected, socket.socket)
                making.unregister(connected)
                if connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                    opened.append(connected)
                else:  # refused or reset: not tried again, the server does not want them
                    connected.close()
        unfinished: Sequence[selectors.SelectorKey] = list(making.get_map().values())
    for key in unfinished:
        assert isinstance(key.fileobj, socket.socket)
        key.fileobj.close()
    return opened


def begin(host: str, port: int) -> socket.socket | None:
    """Begin to connect; None where this machine gives no more descriptors or ports."""
    try:
        made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        return None
    made.setblocking(False)
    if made.connect_ex((host, port)) in (errno.EADDRNOTAVAIL, errno.EAGAIN):
        made.close()
        return None
    return made


def is_open(connection: socket.socket) -> bool:
    """Whether the server has neither ended nor reset a connection."""
    if LEFT:
        poll = select.poll()
        poll.register(connection, LEFT)
        return not poll.poll(0)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main())
