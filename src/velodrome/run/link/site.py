"""The site of a trial whose generator and server have a link between them.

    with opened(link, cpus=placed.load_cpus, seed=1) as site:
        with entered(site.server): ...           # server, third party and companions, on `site.host`
        with entered(site.client): ...           # generator
        site.begin(); ...; facts = site.end()

Nothing is routed outward, so the addresses cannot collide with anybody's.
"""

import socket
import struct
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from velodrome.model.errors import LinkError, LinkRefusedError
from velodrome.model.load import MTU, Link
from velodrome.model.measurement import LinkFacts
from velodrome.run.link import namespace, netem
from velodrome.run.link.joint import BITS, CLIENT, DEVICE, SERVER, Ends, Joint
from velodrome.run.link.namespace import (
    Counted,
    Namespace,
    apply_settings,
    counted,
    entered,
    settings,
    without_ipv6,
)
from velodrome.run.link.relay import Relay
from velodrome.run.machine.netlink import Netlink

PATIENCE_S = 10.0
"""For a first handshake, on top of some round trips: with half of all packets lost a few tries fail."""
SHAKES = 5
"""Handshakes tried when the first was slow."""
LOST_S = 0.9
"""Beyond a round trip: then it is lost. TCP itself tries again after 1 s (RFC 6298)."""
SLOW_MS = 0.5
"""Over what was asked: the next handshake may be better."""
HANDSHAKE_BYTES = 120
"""SYN and SYN-ACK, from the IP header on."""
AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: on, for no time."""


@dataclass
class Site:
    """Two namespaces and what is between them, as long as `opened` lasts."""

    link: Link
    ends: Ends
    joint: Joint
    host: str = SERVER
    """Where the server is to listen."""
    rtt_ms: float = 0.0
    """Of a handshake, when the link was made."""
    congestion: str = ""
    """As a connection told it."""
    _before: tuple[Counted, Counted] | None = None

    @property
    def client(self) -> Namespace:
        """Where the generator is."""
        return self.ends.client

    @property
    def server(self) -> Namespace:
        """Where the server is, and all it talks to but the generator."""
        return self.ends.server

    @property
    def notes(self) -> tuple[str, ...]:
        """For `Placement.notes`."""
        by = "velodrome's relay, on the generator's CPUs" if self.pid else "the kernel's netem"
        return (f"generator and server are joined by {by}, with {self.congestion} at both ends",)

    @property
    def pid(self) -> int | None:
        """The relay's process, for whoever accounts for its CPU."""
        return self.joint.pid

    def begin(self) -> None:
        """The measured span begins, and with it the numbers of packets that the relay draws for. Raises LinkError."""
        self.joint.begin()
        self._before = self._counted()

    def end(self) -> LinkFacts:
        """The measured span is over: return what happened since `begin`. Raises LinkError."""
        facts = self.joint.end(self.congestion, self.rtt_ms)
        before, after = self._before, self._counted()
        if before is None:
            raise LinkError(self.link.label, "its measured span ended before it began")
        pairs = list(zip(before, after, strict=True))
        return replace(
            facts,
            retransmitted=sum(now.retransmitted - then.retransmitted for then, now in pairs),
            overrun=facts.overrun + sum(now.overrun - then.overrun for then, now in pairs),
        )

    def _counted(self) -> tuple[Counted, Counted]:
        try:
            with entered(self.client):
                client = counted(DEVICE)
            with entered(self.server):
                return client, counted(DEVICE)
        except ValueError as error:
            raise LinkError(self.link.label, "its device is gone") from error


@dataclass(frozen=True)
class Loopback:
    """The site of a trial without a link: everything is where velodrome is."""

    client: None = None
    server: None = None
    host: str = "127.0.0.1"
    pid: None = None
    notes: tuple[str, ...] = ()

    def begin(self) -> None:
        """The measured span begins."""

    def end(self) -> None:
        """The measured span is over, and there is nothing to tell."""


@contextmanager
def between(link: Link | None, cpus: Sequence[int] = (), seed: int = 1) -> Iterator[Site | Loopback]:
    """Be the site of a trial: loopback without a link. Raises as `opened` does."""
    if link is None:
        yield Loopback()
        return
    with opened(link, cpus, seed) as site:
        yield site


def refuse_impossible(links: Iterable[Link] = (Link(),)) -> None:
    """Tell before anything is measured that this machine allows one of these links not. Raises LinkRefusedError.

    What a machine may refuse is the relay, which links with jitter need, and a congestion control.
    """
    for jitter, congestion in sorted({(link.jitter_ms > 0, link.congestion) for link in links}):
        with opened(Link(0.2, 0.1 if jitter else 0.0, congestion=congestion)):
            pass


@contextmanager
def opened(link: Link, cpus: Sequence[int] = (), seed: int = 1, joined_by: str = "") -> Iterator[Site]:
    """Make a site, see that it does what it was asked for, and take it away in the end.

    `cpus`: where the relay runs; `joined_by`: `relay` or `netem` where it must be that one. Raises LinkRefusedError
    where this machine allows no link, LinkError where one was made that is not as asked.
    """
    with ExitStack() as running:
        ends = Ends(*(running.enter_context(namespace.make()) for _ in range(2)))
        joint = _join(link, ends, cpus, seed, joined_by)
        running.callback(joint.stop)
        inherited = settings()
        site = Site(link, ends, joint)
        _settle(site, ends.client, (CLIENT, SERVER), inherited)
        _settle(site, ends.server, (SERVER, CLIENT), inherited)
        _shake_hands(site)
        yield site


def _join(link: Link, ends: Ends, cpus: Sequence[int], seed: int, joined_by: str) -> Joint:
    by = joined_by or ("netem" if not link.jitter_ms and netem.available() else "relay")
    return netem.Netem(link, ends, cpus, seed) if by == "netem" else Relay(link, ends, cpus, seed)


def _settle(site: Site, end: Namespace, addresses: tuple[str, str], inherited: Mapping[str, str]) -> None:
    """Give one end its settings, its address (the first), and the way to the other (the second)."""
    joint, (own, peer), congestion = site.joint, addresses, site.link.congestion
    with entered(end), Netlink() as net:
        apply_settings(inherited)
        without_ipv6(DEVICE)
        try:
            net.bring_up("lo")
            net.bring_up(DEVICE, MTU, joint.queue, joint.gso_segments)
            net.add_address(DEVICE, own, BITS)
        except OSError as error:
            raise LinkRefusedError("address", error.errno or 0, f"the device {DEVICE}") from error
        try:
            # By route and not by net.ipv4.tcp_congestion_control: a namespace may choose only among those the whole
            # machine allows to everybody there, and where bbr is the default cubic is not among them.
            net.add_route(DEVICE, peer, own, congestion)
        except OSError as error:
            raise LinkRefusedError("congestion", error.errno or 0, congestion) from error


def _shake_hands(site: Site) -> None:
    """Measure the round trip and ask for the congestion control; a link without effect is an error."""
    link = site.link
    asked_ms = link.rtt_ms + (HANDSHAKE_BYTES * 8e-3 / link.rate_mbit if link.rate_mbit else 0.0)
    until = time.monotonic() + PATIENCE_S + 6 * asked_ms / 1e3
    took: list[float] = []
    with entered(site.server):
        listener = socket.create_server((site.host, 0))
    with listener:
        while len(took) < SHAKES and time.monotonic() < until:
            told = _shake(site, listener, LOST_S + 2 * asked_ms / 1e3)
            if told is None:
                continue
            took.append(told[0])
            site.congestion = told[1]
            if told[0] < asked_ms + 2 * link.jitter_ms + SLOW_MS:
                break
    if not took:
        raise LinkError(link.label, "no handshake came through; ask for less loss")
    site.rtt_ms = min(took)
    if site.rtt_ms < asked_ms - 2 * link.jitter_ms - 0.01:
        raise LinkError(link.label, f"a handshake took {site.rtt_ms:.2f} ms, less than it should")
    if site.congestion != link.congestion:
        raise LinkError(link.label, f"connections use {site.congestion}, not {link.congestion}")


def _shake(site: Site, listener: socket.socket, timeout_s: float) -> tuple[float, str] | None:
    """Connect once: return milliseconds and the congestion control of the server's end, None when lost."""
    with entered(site.client):
        client = socket.socket()
    with client:
        # To part by one packet that nobody answers or sends again, also when nobody was met.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
        client.settimeout(timeout_s)
        listener.settimeout(timeout_s)
        began = time.monotonic()
        try:
            client.connect(listener.getsockname())
            took_ms = (time.monotonic() - began) * 1e3
            server, _ = listener.accept()
        except OSError:
            return None
        with server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
            ends = {
                end.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0").decode()
                for end in (client, server)
            }
        return took_ms, " and ".join(sorted(ends))
