"""What the kernel counts at one end of a link (proc_net_snmp in nstat(8), proc_net_dev in proc(5))."""

from dataclasses import dataclass

SNMP = "/proc/thread-self/net/snmp"
DEVICES = "/proc/thread-self/net/dev"
_RECEIVED_DROPPED, _SENT_DROPPED = 3, 11
"""Columns of /proc/net/dev behind the name."""


@dataclass(frozen=True)
class Counted:
    """Of one namespace, since it was made."""

    retransmitted: int
    """Segments that TCP sent again."""
    overrun: int
    """Packets that the device could not take or hand on."""


def read(device: str) -> Counted:
    """Read those of the present namespace."""
    with open(SNMP) as file:
        names, values = [line.split() for line in file if line.startswith("Tcp:")]
    with open(DEVICES) as file:
        (line,) = [line for line in file if line.split(":")[0].strip() == device]
    columns = [int(column) for column in line.split(":")[1].split()]
    return Counted(
        retransmitted=int(values[names.index("RetransSegs")]),
        overrun=columns[_RECEIVED_DROPPED] + columns[_SENT_DROPPED],
    )
