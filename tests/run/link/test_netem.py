"""What netem is sent, byte for byte; whether it does it is seen in tests/truth where the kernel has it."""

import struct

import pytest
from tests.run.link.possible import NEEDS_LINK

from velodrome.model.errors import LinkRefusedError
from velodrome.model.load import Link
from velodrome.run import link as netem
from velodrome.run.link import open_site
from velodrome.run.machine.netlink import attributes

FIXED = struct.Struct("=6I")
"""struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter."""


def encoded(link: Link) -> tuple[tuple[int, ...], dict[int, bytes]]:
    data = netem.options(link, 9)
    return FIXED.unpack_from(data), dict(attributes(data[FIXED.size :]))


def test_delay_is_half_the_round_trip_in_nanoseconds() -> None:
    fixed, more = encoded(Link(160))
    assert fixed == (0, netem.MOST, 0, 0, 0, 0)
    assert more == {netem.LATENCY64: struct.pack("=q", 80_000_000), netem.SEED: struct.pack("=Q", 9)}


def test_loss_is_a_share_of_all_that_32_bits_hold() -> None:
    assert encoded(Link(loss=0.25))[0][2] == 2**30
    assert encoded(Link(loss=1 - 1e-12))[0][2] == 2**32 - 1


def test_a_rate_is_bytes_of_ip_and_its_limit_holds_what_waits_and_what_travels() -> None:
    fixed, more = encoded(Link(20, rate_mbit=12, queue_packets=30))
    assert fixed[1] == 30 + 10 + 1  # 12 Mbit/s x 10 ms are 10 packets
    assert struct.unpack("=IiIi", more[netem.RATE]) == (1_500_000, -14, 0, 0)
    assert more[netem.RATE64] == struct.pack("=Q", 1_500_000)


@NEEDS_LINK
def test_a_kernel_without_it_refuses_it_by_name_and_else_gets_the_relay() -> None:
    if netem.available():
        pytest.skip("this kernel has it")
    with pytest.raises(LinkRefusedError, match="netem is refused"), open_site(Link(), joined_by="netem"):
        pass
    with open_site(Link()) as site:
        assert site.joint.joined_by == "relay"
