"""A router with netem on both its devices: what joins two namespaces where the kernel has `sch_netem` (tc-netem(8)).

    client ── veth ── router: netem ▶ ── veth ── server         (and ◀ netem on the way back)

It is not on the devices of client and server themselves: TCP notices what its own queue drops, and sends it again
without calling it lost. Netem would move and lose a super-packet of 45 segments as if it were one packet, so these
devices are told to send single segments. It counts what it lost by chance together with what found no room. Packets
overtake each other under its jitter, so a link with jitter is the relay's.
"""

import struct
from collections.abc import Sequence
from contextlib import suppress
from functools import cache

from velodrome.model.errors import LinkRefusedError
from velodrome.model.load import MTU, Link
from velodrome.model.measurement import LinkFacts, WayFacts
from velodrome.run.link import namespace
from velodrome.run.link.joint import CLIENT, DEVICE, SERVER, Ends
from velodrome.run.link.namespace import entered, forward
from velodrome.run.machine.netlink import Netlink, attribute, attributes

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
    with namespace.make() as tried, entered(tried), Netlink() as net:
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
    """A router with netem, in a namespace of its own. Raises LinkRefusedError."""

    joined_by = "netem"
    pid = None
    queue = 0
    gso_segments = 1

    def __init__(self, link: Link, ends: Ends, _cpus: Sequence[int], seed: int) -> None:
        self._before: tuple[WayFacts, ...] = ()
        self._router = namespace.make()
        try:
            for end, name in ((ends.client, TO_CLIENT), (ends.server, TO_SERVER)):
                with entered(end), Netlink() as net:
                    net.add_pair(DEVICE, name, self._router.descriptor)
            with entered(self._router), Netlink() as net:
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
        self._before = self._sent()

    def end(self, congestion: str, rtt_ms: float) -> LinkFacts:
        """Return what happened since `begin`."""
        there, back = (_since(*two) for two in zip(self._before, self._sent(), strict=True))
        return LinkFacts(self.joined_by, congestion, rtt_ms, there, back, None, 0, None, None, None)

    def stop(self) -> None:
        """Let go of the router; its devices go with it, and with them their other ends."""
        self._router.close()

    def _sent(self) -> tuple[WayFacts, WayFacts]:
        with entered(self._router), Netlink() as net:
            return _sent(net.discipline(TO_SERVER)), _sent(net.discipline(TO_CLIENT))


def _sent(statistics: bytes) -> WayFacts:
    """Return what a discipline has sent so far; what was dropped is not among `bytes`."""
    told = dict(attributes(statistics))
    size, packets = struct.unpack_from("=QI", told[STATS_BASIC])
    with suppress(KeyError):  # since Linux 5.5; the other count begins anew after 2^32
        (packets,) = struct.unpack_from("=Q", told[STATS_PACKETS64])
    (dropped,) = struct.unpack_from("=8xI", told[STATS_QUEUE])
    return WayFacts(packets + dropped, size - ETHERNET * packets, None, dropped)


def _since(before: WayFacts, after: WayFacts) -> WayFacts:
    return WayFacts(
        after.packets - before.packets, after.bytes - before.bytes, None, after.dropped - before.dropped
    )
