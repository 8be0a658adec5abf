"""A TUN device: what is sent to it can be read, what is written to it is received (tun(4)).

Sources: Linux `Documentation/networking/tuntap.rst`, `include/uapi/linux/if_tun.h`.
"""

import errno
import fcntl
import os
import struct

from velodrome.model.errors import LinkRefusedError

FILE = "/dev/net/tun"
TUNSETIFF, TUNSETOFFLOAD = 0x4004_54CA, 0x4004_54D0
IFF_TUN, IFF_NO_PI, IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
CHECKSUM, TSO4, TSO_ECN = 0x01, 0x02, 0x08
"""TUN_F_*: leave checksums and the cutting of large sends over IPv4 to whoever reads."""


def open_device(name: str) -> int:
    """Make a device in the present network namespace; return its descriptor, with which the device goes.

    Raises LinkRefusedError.
    """
    try:
        descriptor = os.open(FILE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
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
