"""Where a coordinator listens, without what needs Dask."""

import ipaddress
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from velodrome.model.errors import ClusterAddressError, PlainTcpError

PORT = 8786
"""Dask's own."""
MOST_LOCAL = 64
"""Agents of one machine: more share its CPUs, and measure each other."""
AUTO = "auto"
"""As many agents of this machine as a load needs, where a look before it can tell."""


def count_local(agents: str) -> int | None:
    """Return how many agents of this machine a text means; None: it is to be the address of a coordinator.

    Raises ClusterAddressError.
    """
    if not agents.lstrip("+-").isdecimal() and agents != AUTO:
        return None
    if not (agents.isascii() and agents.isdecimal() and 1 <= int(agents) <= MOST_LOCAL):
        raise ClusterAddressError(agents, MOST_LOCAL)
    return int(agents)


@dataclass(frozen=True)
class Address:
    """Where a coordinator listens."""

    scheme: str
    host: str
    port: int

    @classmethod
    def read(cls, text: str) -> "Address":
        """Read `tls://host:8786`, `tcp://…` or `host:port`, which means TLS but on loopback.

        Raises ClusterAddressError.
        """
        parts = urlsplit(text if "://" in text else f"//{text}")
        try:
            host, port = parts.hostname or "", parts.port or PORT
        except ValueError as error:
            raise ClusterAddressError(text, MOST_LOCAL) from error
        if (
            not host
            or host.startswith("-")  # an option, or a negative number
            or parts.scheme not in ("", "tls", "tcp")
            or parts.path not in ("", "/")
        ):
            raise ClusterAddressError(text, MOST_LOCAL)
        return cls(parts.scheme or ("tcp" if is_loopback(host) else "tls"), host, port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens there."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def refuse_plain(address: str, *, plain: bool) -> None:
    """Raise PlainTcpError for a way without TLS that others than this machine could use, and that nobody accepts."""
    read = Address.read(address)
    if read.scheme == "tcp" and not is_loopback(read.host) and not plain:
        raise PlainTcpError(str(read))
