"""Treatments of sockets: their options, who listens on them, and which ports they get."""

from __future__ import annotations

import struct
import zlib
from typing import Any, Optional, Tuple

from velodrome.guest.injected.giving import Giving, Treatments


def _nodelay(giving: Giving, _: bool) -> None:
    """Turn Nagle's algorithm off (`TCP_NODELAY`) on every connection that the process accepts."""

    def patch(module: Any) -> None:
        before = module.socket.accept

        def accept(self: Any) -> Any:
            accepted, address = before(self)
            is_tcp = accepted.type == module.SOCK_STREAM and accepted.family in (
                module.AF_INET,
                module.AF_INET6,
            )
            if is_tcp and not accepted.getsockopt(module.IPPROTO_TCP, module.TCP_NODELAY):
                accepted.setsockopt(module.IPPROTO_TCP, module.TCP_NODELAY, 1)
                giving.took("nodelay")
            return accepted, address

        module.socket.accept = accept

    giving.finder.after("socket", patch)


def _reuseport(giving: Giving, _: bool) -> None:
    """Have each worker listen on a socket of its own (`SO_REUSEPORT`) in place of one that was bound for all."""

    def bound_together(module: Any) -> None:
        before = module.socket.bind

        def bind(self: Any, address: Any) -> None:
            if self.type == module.SOCK_STREAM and self.family in (module.AF_INET, module.AF_INET6):
                self.setsockopt(module.SOL_SOCKET, module.SO_REUSEPORT, 1)
            before(self, address)

        module.socket.bind = bind

    def own(shared: Any) -> Any:
        import socket

        # One that listens already has a queue that somebody must go on emptying.
        if shared.family == socket.AF_UNIX or shared.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return shared
        made = socket.socket(shared.family, socket.SOCK_STREAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(shared.getsockname())
        giving.took("reuseport")
        return made

    def patch(cls: Any) -> None:
        before = cls.create_server

        async def create_server(self: Any, *args: Any, **more: Any) -> Any:
            if more.get("sock") is not None:
                more["sock"] = own(more["sock"])
            return await before(self, *args, **more)

        cls.create_server = create_server

    giving.finder.after("socket", bound_together)
    giving.finder.after("asyncio.base_events", lambda module: patch(module.BaseEventLoop))
    giving.finder.after("uvloop", lambda module: patch(module.Loop))


def local_ports() -> Optional[Tuple[int, int]]:
    """Return the first and the last port that connections get which a process opens; None: this system does not say."""
    try:
        with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
            first, last = map(int, file.read().split())
    except (OSError, ValueError):
        return None
    return first, last


IP_LOCAL_PORT_RANGE = 51
"""ip(7), since Linux 6.3."""
PORTS = 32_768, 60_999
"""Where this system does not say which ports it gives out."""


def _few_ports(giving: Giving, count: int) -> None:
    """Have connections that the process opens choose among so few ports, as if the others were taken.

    Each start of a server has others: those of the one before are taken for a minute yet.
    """
    first, last = local_ports() or PORTS
    last -= zlib.crc32(giving.folder.encode()) % max((last - first) // count, 1) * count
    chosen = struct.pack("=I", last - count + 1 | last << 16)

    def patch(module: Any) -> None:
        inet = (module.AF_INET, module.AF_INET6)

        def narrowed(name: str) -> None:
            before = getattr(module.socket, name)

            def connect(sock: Any, address: Any) -> Any:
                # Bound to an address alone, as `source_address` has it, a socket gets its port before it connects.
                chooses = name != "bind" or (
                    isinstance(address, tuple) and len(address) > 1 and address[1] == 0
                )
                if chooses and sock.family in inet and sock.type == module.SOCK_STREAM:
                    try:
                        sock.setsockopt(module.IPPROTO_IP, IP_LOCAL_PORT_RANGE, chosen)
                        giving.took("few-ports")
                    except OSError:  # an older kernel
                        pass
                return before(sock, address)

            setattr(module.socket, name, connect)

        narrowed("connect")
        narrowed("connect_ex")
        narrowed("bind")

    def of_uvloop(module: Any) -> None:
        before = module.Loop.create_connection

        async def create_connection(
            loop: Any, protocol: Any, host: Any = None, port: Any = None, **named: Any
        ) -> Any:
            if host is None or named.get("sock") is not None:
                return await before(loop, protocol, host, port, **named)
            # By a socket of Python's, whose `connect` is the one above.
            import socket

            (family, _, _, _, address), *_ = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setblocking(False)
            try:
                await loop.sock_connect(sock, address)
            except BaseException:
                sock.close()
                raise
            if named.get("ssl") and not named.get("server_hostname"):
                named["server_hostname"] = host
            for name in ("family", "proto", "flags", "local_addr", "happy_eyeballs_delay", "interleave"):
                named.pop(name, None)
            return await before(loop, protocol, None, None, **{**named, "sock": sock})

        module.Loop.create_connection = create_connection

    giving.finder.after("socket", patch)
    giving.finder.after("uvloop", of_uvloop)


TREATMENTS: Treatments = {"nodelay": _nodelay, "reuseport": _reuseport, "few-ports": _few_ports}
