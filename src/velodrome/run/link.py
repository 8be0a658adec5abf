"""The network between generator and server: two network namespaces of velodrome's own, joined as a `Link` says.

    with open_site(link, cpus=placed.load_cpus, seed=1) as site:
        with enter(site.server): ...           # server, third party and services, on `site.host`
        with enter(site.client): ...           # generator
        site.begin(); ...; facts = site.end()

In reading order: namespaces, the two ways to join them (the kernel's netem, or a relay of our own), the site of a
trial. Nothing is routed outward, so the addresses cannot collide with anybody's. `docs/link.md` says how it works, how
exact it is, and what it cannot imitate.
"""

import ctypes
import errno
import fcntl
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from velodrome.model.errors import LinkError, LinkRefusedError
from velodrome.model.load import MTU, Link
from velodrome.model.measurement import LinkFacts, WayFacts
from velodrome.run.machine.limits import PREFIX
from velodrome.run.machine.netlink import Netlink, attribute, attributes
from velodrome.run.supervision import python

CLONE_NEWNET = 0x4000_0000
OWN = "/proc/thread-self/ns/net"
SETTINGS = Path("/proc/sys/net")
"""Shows and sets those of the namespace of the thread that looks."""
INHERITED = (
    "core/somaxconn",
    "ipv4/ip_local_port_range",
    "ipv4/tcp_abort_on_overflow",
    "ipv4/tcp_ecn",
    "ipv4/tcp_fastopen",
    "ipv4/tcp_fin_timeout",
    "ipv4/tcp_max_syn_backlog",
    "ipv4/tcp_max_tw_buckets",
    "ipv4/tcp_notsent_lowat",
    "ipv4/tcp_rmem",
    "ipv4/tcp_sack",
    "ipv4/tcp_slow_start_after_idle",
    "ipv4/tcp_syncookies",
    "ipv4/tcp_timestamps",
    "ipv4/tcp_tw_reuse",
    "ipv4/tcp_window_scaling",
    "ipv4/tcp_wmem",
)
ADDED = {"ipv4/tcp_no_metrics_save": "1"}
"""Else a connection begins with what the kernel learnt from the last connection to the same address: the second load of
a server would be faster than the first.
"""
SNMP = "/proc/thread-self/net/snmp"
DEVICES = "/proc/thread-self/net/dev"
_RECEIVED_DROPPED, _SENT_DROPPED = 3, 11
"""Columns of /proc/net/dev behind the name."""


class Namespace:
    """A network of its own, without any device but a loopback that is down. Close it to let go of it.

    It has no name and no mount (namespaces(7), setns(2)): it lives as long as a process or a descriptor holds it, so
    that a killed velodrome leaves none behind.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def close(self) -> None:
        """Let go of it; may be called again."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def make() -> Namespace:
    """Return a new namespace. Raises LinkRefusedError where that is not allowed."""
    if sys.platform != "linux":
        raise LinkRefusedError("system", 0)
    own = os.open(OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # First the way back: in a user namespace it may be closed although the way out is open.
        _call("setns", own, CLONE_NEWNET)
        _call("unshare", CLONE_NEWNET)
        try:
            return Namespace(os.open(OWN, os.O_RDONLY | os.O_CLOEXEC))
        finally:
            _call("setns", own, CLONE_NEWNET)
    except OSError as error:
        raise LinkRefusedError("namespace", error.errno or errno.EPERM) from error
    finally:
        os.close(own)


@contextmanager
def enter(namespace: Namespace | None) -> Iterator[None]:
    """Be in a namespace while the context lasts; None: stay where this thread is.

    Only the calling thread is moved; what it starts stays there. Sockets, /proc/thread-self/net and children are those
    of the namespace.
    """
    if namespace is None:
        yield
        return
    before = os.open(OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call("setns", namespace.descriptor, CLONE_NEWNET)
        try:
            yield
        finally:
            _call("setns", before, CLONE_NEWNET)
    finally:
        os.close(before)


def settings() -> Mapping[str, str]:
    """Return the settings of the present namespace that another is to have.

    A server behind a link shall differ from a server on loopback by the link and by nothing else, and the kernel begins
    a namespace with its own defaults.
    """
    found = {}
    for name in INHERITED:
        with suppress(OSError):  # an older kernel has it for the whole machine, or not at all
            found[name] = (SETTINGS / name).read_text().strip()
    return found


def apply_settings(inherited: Mapping[str, str]) -> None:
    """Give the present namespace these settings, and those that are ours; a kernel without a setting has its
    reasons."""
    for name, value in {**inherited, **ADDED}.items():
        with suppress(OSError):
            if (SETTINGS / name).read_text().strip() != value:
                (SETTINGS / name).write_text(value)


def forward(devices: Iterable[str]) -> None:
    """Make the present namespace a router between devices that have no addresses. Raises OSError."""
    (SETTINGS / "ipv4/ip_forward").write_text("1")
    for device in ("all", *devices):
        # Else what comes back by a way of which the router has no address is taken for a forgery.
        (SETTINGS / f"ipv4/conf/{device}/rp_filter").write_text("0")


def without_ipv6(device: str) -> None:
    """Keep a device free of IPv6, whose router solicitations would be packets of nobody's in the link."""
    with suppress(OSError):
        (SETTINGS / f"ipv6/conf/{device}/disable_ipv6").write_text("1")


@dataclass(frozen=True)
class Counted:
    """Of one namespace, since it was made."""

    retransmitted: int
    """Segments that TCP sent again."""
    overrun: int
    """Packets that the device could not take or hand on."""


def read_counters(device: str) -> Counted:
    """Read the counters of the present namespace (proc_net_snmp in nstat(8), proc_net_dev in proc(5))."""
    with open(SNMP) as file:
        names, values = [line.split() for line in file if line.startswith("Tcp:")]
    with open(DEVICES) as file:
        (line,) = [line for line in file if line.split(":")[0].strip() == device]
    columns = [int(column) for column in line.split(":")[1].split()]
    return Counted(
        retransmitted=int(values[names.index("RetransSegs")]),
        overrun=columns[_RECEIVED_DROPPED] + columns[_SENT_DROPPED],
    )


def _call(name: str, *arguments: int) -> None:
    """Call a function of the C library: `os` has these two from Python 3.12 on only. Raises OSError."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


CLIENT, SERVER, BITS = "198.18.0.1", "198.18.0.2", 30
"""Of the range set apart for measuring networks (RFC 2544)."""
DEVICE = f"{PREFIX}0"
"""Name of the device in either namespace: at most 15 characters."""


@dataclass(frozen=True)
class Ends:
    """The two namespaces."""

    client: Namespace
    server: Namespace


class Joint(Protocol):
    """A device called `DEVICE` at either end, and what is between them."""

    @property
    def joined_by(self) -> str:
        """As `LinkFacts.joined_by`."""

    @property
    def pid(self) -> int | None:
        """The process that does it; None: the kernel."""

    @property
    def queue(self) -> int:
        """Packets a device holds until they are sent on; 0: as the kernel has it."""

    @property
    def gso_segments(self) -> int:
        """Segments that TCP may send as one packet; 0: as the kernel has it."""

    def begin(self) -> None:
        """The measured span begins. Raises LinkError."""

    def end(self, congestion: str, rtt_ms: float) -> LinkFacts:
        """Return what happened since `begin`, but what TCP sent again. Raises LinkError."""

    def stop(self) -> None:
        """Take it away; may be called again."""


RATE, RATE64, LATENCY64, SEED = 6, 8, 10, 14
"""TCA_NETEM_*, `include/uapi/linux/pkt_sched.h`."""
STATS_BASIC, STATS_QUEUE, STATS_PACKETS64 = 1, 3, 8
ETHERNET = 14
"""Bytes before the IP header, which netem counts and a link does not."""
TO_CLIENT, TO_SERVER = "to-client", "to-server"
"""The router's devices."""
MOST = 1_000_000
"""Packets netem holds where there is no bottleneck: as good as no limit."""


@cache
def available() -> bool:
    """Whether the kernel has netem. Raises LinkRefusedError where not even a namespace may be made."""
    with make() as tried, enter(tried), Netlink() as net:
        try:
            net.add_discipline("lo", "netem", options(Link(1.0), 0))
        except OSError:
            return False
    return True


def options(link: Link, seed: int) -> bytes:
    """Return netem's settings of one direction (`struct tc_netem_qopt` and attributes).

    Netem's limit holds for packets that wait and packets that travel, so these are added to the room of the queue.
    """
    travelling = (link.rate_mbit or 0.0) * link.each_way_ms * 1e3 / 8 / MTU
    limit = MOST if link.room is None else link.room + round(travelling) + 1
    data = struct.pack("=6I", 0, limit, min(0xFFFF_FFFF, round(link.loss * 2**32)), 0, 0, 0)
    data += attribute(LATENCY64, struct.pack("=q", round(link.each_way_ms * 1e6)))
    if link.rate_mbit is not None:
        rate = round(link.rate_mbit * 1e6 / 8)
        data += attribute(RATE, struct.pack("=IiIi", min(rate, 0xFFFF_FFFF), -ETHERNET, 0, 0))
        data += attribute(RATE64, struct.pack("=Q", rate))
    return data + attribute(SEED, struct.pack("=Q", seed))


class Netem:
    """A router with netem (tc-netem(8)) on both its devices, in a namespace of its own. Raises LinkRefusedError.

        client ── veth ── router: netem ▶ ── veth ── server         (and ◀ netem on the way back)

    It is not on the devices of client and server themselves: TCP notices what its own queue drops, and sends it again
    without calling it lost. Netem would move and lose a super-packet of 45 segments as if it were one packet, so these
    devices send single segments. It counts what it lost by chance together with what found no room. Packets overtake
    each other under its jitter, so a link with jitter is the relay's.
    """

    joined_by = "netem"
    pid = None
    queue = 0
    gso_segments = 1

    def __init__(self, link: Link, ends: Ends, _cpus: Sequence[int], seed: int) -> None:
        self._before: tuple[WayFacts, ...] = ()
        self._router = make()
        try:
            for end, name in ((ends.client, TO_CLIENT), (ends.server, TO_SERVER)):
                with enter(end), Netlink() as net:
                    net.add_pair(DEVICE, name, self._router.descriptor)
            with enter(self._router), Netlink() as net:
                forward((TO_CLIENT, TO_SERVER))
                for number, (name, whom) in enumerate(((TO_SERVER, SERVER), (TO_CLIENT, CLIENT))):
                    net.add_discipline(name, "netem", options(link, 2 * seed + number))
                    net.bring_up(name, MTU)
                    net.add_route(name, whom)
        except OSError as error:
            self.stop()
            raise LinkRefusedError("netem", error.errno or 0, "netem") from error

    def begin(self) -> None:
        """The measured span begins."""
        self._before = self._read_sent()

    def end(self, congestion: str, rtt_ms: float) -> LinkFacts:
        """Return what happened since `begin`."""
        there, back = (_since(*two) for two in zip(self._before, self._read_sent(), strict=True))
        return LinkFacts(self.joined_by, congestion, rtt_ms, there, back, None, 0, None, None, None)

    def stop(self) -> None:
        """Let go of the router; its devices go with it, and with them their other ends."""
        self._router.close()

    def _read_sent(self) -> tuple[WayFacts, WayFacts]:
        with enter(self._router), Netlink() as net:
            return _sent_facts(net.discipline(TO_SERVER)), _sent_facts(net.discipline(TO_CLIENT))


def _sent_facts(statistics: bytes) -> WayFacts:
    """Return what a discipline has sent so far; what was dropped is not among `bytes`."""
    statistics_by_kind = dict(attributes(statistics))
    size, packets = struct.unpack_from("=QI", statistics_by_kind[STATS_BASIC])
    with suppress(KeyError):  # since Linux 5.5; the other count begins anew after 2^32
        (packets,) = struct.unpack_from("=Q", statistics_by_kind[STATS_PACKETS64])
    (dropped,) = struct.unpack_from("=8xI", statistics_by_kind[STATS_QUEUE])
    return WayFacts(packets + dropped, size - ETHERNET * packets, None, dropped)


def _since(before: WayFacts, after: WayFacts) -> WayFacts:
    return WayFacts(
        after.packets - before.packets, after.bytes - before.bytes, None, after.dropped - before.dropped
    )


MODULE = "velodrome.run.relay_process"
RELAY_PATIENCE_S = 10.0
"""To start or to tell its facts; both take milliseconds on an idle machine."""
TUN = "/dev/net/tun"
TUNSETIFF, TUNSETOFFLOAD = 0x4004_54CA, 0x4004_54D0
IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
CHECKSUM, TSO4, TSO_ECN = 0x01, 0x02, 0x08
"""TUN_F_*: leave checksums and the cutting of large sends over IPv4 to whoever reads."""


class Relay:
    """A running relay, in a process pinned to the load's CPUs. Raises LinkRefusedError or LinkError.

    The process holds the only descriptors of both TUN devices, so that the devices go when it does, and it goes when
    velodrome does. What is sent to a TUN device can be read, what is written to it is received (tun(4); Linux
    `Documentation/networking/tuntap.rst`, `include/uapi/linux/if_tun.h`).
    """

    joined_by = "relay"
    queue = 2_000
    """Some milliseconds of small packets, or 128 MB of the largest: what finds it full is lost."""
    gso_segments = 0

    def __init__(self, link: Link, ends: Ends, cpus: Sequence[int], seed: int) -> None:
        self._link = link
        descriptors: list[int] = []
        try:
            for namespace in (ends.client, ends.server):
                with enter(namespace):
                    descriptors.append(open_device(DEVICE))
            self._child = python.start_own(MODULE, *map(str, descriptors), cpus=cpus, pass_fds=descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        try:
            self.realtime = bool(self._ask(json.dumps(spec(link, seed)))["realtime"])
        except LinkError:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        """Its process id, for whoever accounts for its CPU."""
        return self._child.pid

    def begin(self) -> None:
        """The measured span begins. Raises LinkError."""
        self._ask("facts")

    def end(self, congestion: str, rtt_ms: float) -> LinkFacts:
        """Return what happened since `begin`. Raises LinkError."""
        facts = self._ask("facts")
        return LinkFacts(
            joined_by=self.joined_by,
            congestion=congestion,
            rtt_ms=rtt_ms,
            there=_way(facts["there"]),
            back=_way(facts["back"]),
            retransmitted=None,
            overrun=facts["there"]["undelivered"] + facts["back"]["undelivered"],
            late_p50_ms=facts["late_ms"]["p50"],
            late_p99_ms=facts["late_ms"]["p99"],
            late_max_ms=facts["late_ms"]["max"],
            hdr_late=facts["hdr_late"],
            cpu_s=facts["cpu_s"],
            realtime=self.realtime,
        )

    def _ask(self, line: str) -> Mapping[str, Any]:
        try:
            self._child.input.write(line.encode() + b"\n")
            answer: Mapping[str, Any] = json.loads(self._child.answer(RELAY_PATIENCE_S))
        except (BrokenPipeError, EOFError, TimeoutError, ValueError) as error:
            reason = (
                str(error)
                if isinstance(error, TimeoutError)
                else f"its relay has ended ({self._child.ending()})"
            )
            raise LinkError(self._link.label, reason, self._child.last_lines()) from error
        if "error" in answer:
            raise LinkError(self._link.label, answer["error"])
        return answer

    def stop(self) -> None:
        """End it, and with it the devices; may be called again."""
        self._child.__exit__(None, None, None)


def spec(link: Link, seed: int) -> Mapping[str, Any]:
    """Return what `_native.Link` takes: both ways alike."""
    way = {
        "delay_ns": round(link.each_way_ms * 1e6),
        "jitter_ns": round(link.jitter_ms * 1e6),
        "rate_mbit": link.rate_mbit,
        "queue_packets": link.room,
        "loss": link.loss,
    }
    return {"there": way, "back": way, "seed": seed}


def _way(facts: Mapping[str, int]) -> WayFacts:
    return WayFacts(facts["packets"], facts["bytes"], facts["lost"], facts["dropped"])


def open_device(name: str) -> int:
    """Make a device in the present network namespace; return its descriptor, with which the device goes.

    Raises LinkRefusedError.
    """
    try:
        descriptor = os.open(TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise LinkRefusedError("device", error.errno or errno.ENOENT) from error
    try:
        fcntl.ioctl(
            descriptor, TUNSETIFF, struct.pack("=16sH22x", name.encode(), IFF_TUN | IFF_NO_PI | IFF_VNET_HDR)
        )
        fcntl.ioctl(descriptor, TUNSETOFFLOAD, CHECKSUM | TSO4 | TSO_ECN)
    except OSError as error:
        os.close(descriptor)
        raise LinkRefusedError("device", error.errno or errno.EPERM) from error
    return descriptor


HANDSHAKE_PATIENCE_S = 10.0
"""For a first handshake, on top of some round trips: with half of all packets lost a few tries fail."""
SHAKES = 5
"""Handshakes tried when the first was slow."""
LOST_S = 0.9
"""Beyond a round trip: then it is lost. TCP itself tries again after 1 s (RFC 6298)."""
SLOW_MS = 0.5
"""Over the nominal time: the next handshake may be better."""
HANDSHAKE_BYTES = 120
"""SYN and SYN-ACK, from the IP header on."""
AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: on, for no time."""


@dataclass
class Site:
    """Two namespaces and what is between them, as long as `open_site` lasts."""

    link: Link
    ends: Ends
    joint: Joint
    host: str = SERVER
    """Where the server is to listen."""
    rtt_ms: float = 0.0
    """Of a handshake, when the link was made."""
    congestion: str = ""
    """As a connection reported it."""
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
        self._before = self._read_counters()

    def end(self) -> LinkFacts:
        """The measured span is over: return what happened since `begin`. Raises LinkError."""
        facts = self.joint.end(self.congestion, self.rtt_ms)
        before, after = self._before, self._read_counters()
        if before is None:
            raise LinkError(self.link.label, "its measured span ended before it began")
        pairs = list(zip(before, after, strict=True))
        return replace(
            facts,
            retransmitted=sum(now.retransmitted - then.retransmitted for then, now in pairs),
            overrun=facts.overrun + sum(now.overrun - then.overrun for then, now in pairs),
        )

    def _read_counters(self) -> tuple[Counted, Counted]:
        try:
            with enter(self.client):
                client = read_counters(DEVICE)
            with enter(self.server):
                return client, read_counters(DEVICE)
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
    """Be the site of a trial: loopback without a link. Raises as `open_site` does."""
    if link is None:
        yield Loopback()
        return
    with open_site(link, cpus, seed) as site:
        yield site


def refuse_impossible(links: Iterable[Link] = (Link(),)) -> None:
    """Tell before anything is measured that this machine allows one of these links not. Raises LinkRefusedError.

    What a machine may refuse is the relay, which links with jitter need, and a congestion control.
    """
    for jitter, congestion in sorted({(link.jitter_ms > 0, link.congestion) for link in links}):
        with open_site(Link(0.2, 0.1 if jitter else 0.0, congestion=congestion)):
            pass


@contextmanager
def open_site(link: Link, cpus: Sequence[int] = (), seed: int = 1, joined_by: str = "") -> Iterator[Site]:
    """Make a site, check that it is what the link describes, and take it away in the end.

    `cpus`: where the relay runs; `joined_by`: `relay` or `netem` where it must be that. Raises LinkRefusedError
    where this machine allows no link, LinkError where one was made that is not as the link describes.
    """
    with ExitStack() as running:
        ends = Ends(*(running.enter_context(make()) for _ in range(2)))
        joint = _join(link, ends, cpus, seed, joined_by)
        running.callback(joint.stop)
        inherited = settings()
        site = Site(link, ends, joint)
        _settle(site, ends.client, (CLIENT, SERVER), inherited)
        _settle(site, ends.server, (SERVER, CLIENT), inherited)
        _shake_hands(site)
        yield site


def _join(link: Link, ends: Ends, cpus: Sequence[int], seed: int, joined_by: str) -> Joint:
    by = joined_by or ("netem" if not link.jitter_ms and available() else "relay")
    return Netem(link, ends, cpus, seed) if by == "netem" else Relay(link, ends, cpus, seed)


def _settle(site: Site, end: Namespace, addresses: tuple[str, str], inherited: Mapping[str, str]) -> None:
    """Give one end its settings, its address (the first), and the way to the other (the second)."""
    joint, (own, peer), congestion = site.joint, addresses, site.link.congestion
    with enter(end), Netlink() as net:
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
    nominal_ms = link.rtt_ms + (HANDSHAKE_BYTES * 8e-3 / link.rate_mbit if link.rate_mbit else 0.0)
    until = time.monotonic() + HANDSHAKE_PATIENCE_S + 6 * nominal_ms / 1e3
    took: list[float] = []
    with enter(site.server):
        listener = socket.create_server((site.host, 0))
    with listener:
        while len(took) < SHAKES and time.monotonic() < until:
            shaken = _shake(site, listener, LOST_S + 2 * nominal_ms / 1e3)
            if shaken is None:
                continue
            took.append(shaken[0])
            site.congestion = shaken[1]
            if shaken[0] < nominal_ms + 2 * link.jitter_ms + SLOW_MS:
                break
    if not took:
        raise LinkError(link.label, "no handshake came through; configure less loss")
    site.rtt_ms = min(took)
    if site.rtt_ms < nominal_ms - 2 * link.jitter_ms - 0.01:
        raise LinkError(link.label, f"a handshake took {site.rtt_ms:.2f} ms, less than it should")
    if site.congestion != link.congestion:
        raise LinkError(link.label, f"connections use {site.congestion}, not {link.congestion}")


def _shake(site: Site, listener: socket.socket, timeout_s: float) -> tuple[float, str] | None:
    """Connect once: return milliseconds and the congestion control of the server's end, None when lost."""
    with enter(site.client):
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
