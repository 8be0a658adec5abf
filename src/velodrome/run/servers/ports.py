"""A port that is fresh: nobody listens on it, and the kernel will not hand it out to a client."""

import random
import socket
from collections.abc import Container
from pathlib import Path

from velodrome.model.errors import NoPortError
from velodrome.run.machine import netlink

FIRST, LAST = 10_000, 60_999
"""Above the ports of well-known services, below the private range of some systems."""
TRIES = 200
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")


def ephemeral(file: Path = EPHEMERAL) -> range:
    """Return the ports that outgoing connections take: one of ours could be taken by a client of the load."""
    try:
        low, high = map(int, file.read_text().split())
    except (OSError, ValueError):
        return range(49_152, 65_536)  # RFC 6335, section 6; macOS
    return range(low, high + 1)


def fresh_port(host: str = "127.0.0.1", avoid: Container[int] | None = None) -> int:
    """Return a free port of `host` outside the ephemeral range where there is one. Raises NoPortError.

    Drawn at random, so that a port is not used again while connections of the last server linger on it.
    """
    avoid = ephemeral() if avoid is None else avoid
    candidates = [port for port in range(FIRST, LAST + 1) if port not in avoid] or list(
        range(FIRST, LAST + 1)
    )
    draw = random.SystemRandom()
    for port in draw.sample(candidates, min(TRIES, len(candidates))):
        if _free(host, port):
            return port
    raise NoPortError(host, TRIES)


def _free(host: str, port: int) -> bool:
    """Whether nobody listens on the port and it can be bound (without SO_REUSEPORT, which would share it)."""
    if netlink.listening(port):
        return False
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
