"""Clients beside the load: some come and go before it, others hold a connection open through it and say nothing.

with hold_idle(950, "http://127.0.0.1:8000/", cpus=(1,)) as idle:
    ... the load ...
    facts = idle.facts()

Those are held by a process of their own on the CPUs for load (`idle_process.py`), so that their descriptors are not
velodrome's. `meet_server` makes the others.
"""

import ipaddress
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import urlsplit

from velodrome.model.errors import IdleError, LoadRefusedError
from velodrome.model.measurement import IdleFacts
from velodrome.run.link import Namespace, enter
from velodrome.run.machine import netlink
from velodrome.run.supervision import python

MODULE = "velodrome.run.idle_process"
OPEN_S = 20.0
"""To open them all: 4,000 take half a second on one machine, and 10 s at a round trip of 160 ms."""
ACCEPT_S = 3.0
"""From then till the server has taken all in, if it does; it needs some 50 us for each."""
LOOKUP_S = 10.0
"""For a name server, as the engine gives it."""
PATIENCE_S = 5.0
"""For the process to answer, beyond what it was given."""


class Idle:
    """Connections that are held."""

    def __init__(self, child: python.Child, wanted: int, opened: int) -> None:
        self._child, self._wanted, self._opened = child, wanted, opened
        self._accepted: int | None = None

    @property
    def pid(self) -> int:
        """The process that holds them, for whoever accounts for CPU."""
        return self._child.pid

    def await_accepted(self, port: int) -> None:
        """Wait till the server on a port of this machine has taken all of them in, or does not."""
        until = time.monotonic() + ACCEPT_S
        while True:
            self._accepted = count_accepted(port)
            if self._accepted is None or self._accepted >= self._opened or time.monotonic() >= until:
                return
            time.sleep(0.02)

    def facts(self) -> IdleFacts:
        """Return how many are open now. Raises IdleError when the process that held them is gone."""
        answer = _reply(self._child, b"now\n", PATIENCE_S)
        return IdleFacts(self._wanted, self._opened, self._accepted, answer["still_open"])


def count_accepted(port: int) -> int | None:
    """Return how many connections to a port of this machine a server has accepted; None where that is not known."""
    sockets = netlink.established_sockets(port)
    return None if sockets is None else sum(tcp_socket.inode != 0 for tcp_socket in sockets)


@contextmanager
def hold_idle(
    count: int,
    url: str,
    cpus: Sequence[int] = (),
    allow: Sequence[str] = (),
    open_s: float = OPEN_S,
    *,
    server: Namespace | None = None,
) -> Iterator[Idle | None]:
    """Hold `count` connections to the server of `url` while the context lasts; None for none.

    They come from the network this thread is in; `server` is the server's where that is another network of ours.
    A server that does not take them, or ends them, is a fact; see `Idle.facts`. Raises LoadRefusedError for a
    host that is neither this machine nor in `allow`, IdleError when they cannot be held here at all.
    """
    if not count:
        yield None
        return
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 80
    address = address_of(host, allow)
    with python.start_own(MODULE, cpus=cpus) as child:
        work = {"host": address, "port": port, "count": count, "open_s": open_s}
        answer = _reply(child, json.dumps(work).encode() + b"\n", open_s + PATIENCE_S)
        idle = Idle(child, count, answer["opened"])
        if _is_loopback(address) or server is not None:
            with enter(server):
                idle.await_accepted(port)
        yield idle


def address_of(host: str, allow: Sequence[str]) -> str:
    """Return the address of a host that may be loaded. Raises LoadRefusedError, IdleError."""
    try:
        address = _resolve_host(host)
    except OSError as error:
        raise IdleError(f"{host} cannot be looked up ({error})") from error
    if host not in allow and not _is_loopback(address):
        raise LoadRefusedError(
            f"refusing to hold connections to {host}: not loopback. "
            f"If you are allowed to load it: --allow-target {host}"
        )
    return address


def _resolve_host(host: str) -> str:
    """Return the first address of a host. Raises OSError.

    On a thread of its own: while a name server is waited for, nothing else ends this, Ctrl-C included.
    """
    answer: SimpleQueue[str | OSError] = SimpleQueue()

    def look() -> None:
        try:
            answer.put(str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0]))
        except OSError as error:
            answer.put(error)

    threading.Thread(target=look, daemon=True).start()
    try:
        found = answer.get(timeout=LOOKUP_S)
    except Empty:
        raise TimeoutError(f"no name server answered within {LOOKUP_S:g} s") from None
    if isinstance(found, OSError):
        raise found
    return found


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback


def _reply(child: python.Child, line: bytes, patience_s: float) -> Mapping[str, Any]:
    """Send a line and return the answer. Raises IdleError when none comes in time."""
    try:
        child.input.write(line)
        found: Mapping[str, Any] = json.loads(child.answer(patience_s))
    except TimeoutError as error:
        raise IdleError(str(error)) from error
    except (EOFError, BrokenPipeError, ValueError) as error:
        raise IdleError("its process has ended", child.last_lines()) from error
    return found


EACH = 8
"""Connections for each worker: whichever wakes takes a connection, and a worker that gets none pays as described
above."""
CONNECT_S = 2.0
"""For one connection, round trip included: who does not take it in time is not waited for."""


def meet_server(url: str, workers: int = 1) -> None:
    """Connect to the server of `url`, all at once, say nothing, and go. What becomes of them is of no interest."""
    parts = urlsplit(url)
    with ExitStack() as opened, suppress(OSError):
        for _ in range(EACH * workers):
            address = parts.hostname or "", parts.port or 80
            opened.enter_context(socket.create_connection(address, CONNECT_S))
