"""The relay in a process of its own, pinned to the load's CPUs: what joins two namespaces without netem.

The process holds the only descriptors of both TUN devices, so that the devices go when it does, and it goes when
velodrome does. What is sent to a TUN device can be read, what is written to it is received (tun(4); Linux
`Documentation/networking/tuntap.rst`, `include/uapi/linux/if_tun.h`).
"""

import errno
import fcntl
import json
import os
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from velodrome.model.errors import LinkError, LinkRefusedError
from velodrome.model.load import Link
from velodrome.model.measurement import LinkFacts, WayFacts
from velodrome.run.link.joint import DEVICE, Ends
from velodrome.run.link.namespace import entered
from velodrome.run.supervision import lifeline

MODULE = "velodrome.run.link.relay_process"
PATIENCE_S = 10.0
"""To start or to tell its facts; both take milliseconds on an idle machine."""
TUN = "/dev/net/tun"
TUNSETIFF, TUNSETOFFLOAD = 0x4004_54CA, 0x4004_54D0
IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
CHECKSUM, TSO4, TSO_ECN = 0x01, 0x02, 0x08
"""TUN_F_*: leave checksums and the cutting of large sends over IPv4 to whoever reads."""


class Relay:
    """A running relay. Raises LinkRefusedError or LinkError."""

    joined_by = "relay"
    queue = 2_000
    """Some milliseconds of small packets, or 128 MB of the largest: what finds it full is lost."""
    gso_segments = 0

    def __init__(self, link: Link, ends: Ends, cpus: Sequence[int], seed: int) -> None:
        self._link = link
        descriptors: list[int] = []
        try:
            for namespace in (ends.client, ends.server):
                with entered(namespace):
                    descriptors.append(open_device(DEVICE))
            self._child = lifeline.start(MODULE, *map(str, descriptors), cpus=cpus, pass_fds=descriptors)
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
        told = self._ask("facts")
        return LinkFacts(
            joined_by=self.joined_by,
            congestion=congestion,
            rtt_ms=rtt_ms,
            there=_way(told["there"]),
            back=_way(told["back"]),
            retransmitted=None,
            overrun=told["there"]["undelivered"] + told["back"]["undelivered"],
            late_p50_ms=told["late_ms"]["p50"],
            late_p99_ms=told["late_ms"]["p99"],
            late_max_ms=told["late_ms"]["max"],
            hdr_late=told["hdr_late"],
            cpu_s=told["cpu_s"],
            realtime=self.realtime,
        )

    def _ask(self, line: str) -> Mapping[str, Any]:
        try:
            self._child.input.write(line.encode() + b"\n")
            answer: Mapping[str, Any] = json.loads(self._child.answer(PATIENCE_S))
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


def _way(told: Mapping[str, int]) -> WayFacts:
    return WayFacts(told["packets"], told["bytes"], told["lost"], told["dropped"])


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
