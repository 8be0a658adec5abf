"""`hot-workers`: whoever waits for connections is woken alone, and always the same one first (EPOLLEXCLUSIVE).

Servers in C and Rust do that; here it is done to asyncio's selector, which otherwise wakes all.
"""

import select
import selectors
import socket

from sound import waiting

register = selectors.EpollSelector.register


def exclusively(self, fileobj, events, data=None):
    key = register(self, fileobj, events, data)
    own = socket.socket(fileno=key.fd)
    try:
        listens = own.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError:
        listens = False
    finally:
        own.detach()
    if listens:
        self._selector.unregister(key.fd)
        self._selector.register(key.fd, select.EPOLLIN | select.EPOLLEXCLUSIVE)
    return key


selectors.EpollSelector.register = exclusively
severe = waiting
