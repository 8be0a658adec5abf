"""Who holds the sockets of a port: connections by process, and listeners that are not ours.

A second server may bind the same port in silence (SO_REUSEPORT: grpcio does) and take a share of the
connections.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from velodrome.run.machine import netlink


@dataclass(frozen=True)
class Listener:
    """A socket that listens on the server's port and is not the server's."""

    address: str
    pid: int | None
    """Who holds it, where that may be known."""
    name: str


def connections(port: int, pids: Iterable[int]) -> Mapping[int, int] | None:
    """Return established connections to `port` by the process that accepted them; None where it cannot be
    told.

    A connection inherited by several processes counts for each. About 2 us for each descriptor of these
    processes.
    """
    sockets = netlink.established(port)
    if sockets is None:
        return None
    wanted = {sock.inode for sock in sockets if sock.inode}
    return {pid: sum(inode in wanted for inode in _inodes(pid)) for pid in pids}


def holders(port: int) -> tuple[int, ...]:
    """Return the processes that hold a socket listening on `port`; empty where it cannot be told.

    Looks at every descriptor of every process that may be looked at, some 2 us each.
    """
    wanted = {sock.inode for sock in netlink.listening(port) or () if sock.inode}
    return tuple(dict.fromkeys(pid for _, pid in _holders(wanted, ()))) if wanted else ()


def foreign(port: int, pids: Collection[int]) -> tuple[Listener, ...]:
    """Return the listeners of `port` that none of `pids` holds; empty where it cannot be told."""
    sockets = netlink.listening(port) or ()
    ours = {inode for pid in pids for inode in _inodes(pid)} if sockets else set()
    strangers = {sock.inode: sock.address for sock in sockets if sock.inode not in ours}
    if not strangers or not ours:
        return ()
    holders = dict(_holders(strangers.keys(), pids))
    return tuple(
        Listener(address, holders.get(inode), _name(holders.get(inode)))
        for inode, address in strangers.items()
    )


def _inodes(pid: int) -> Iterator[int]:
    """Yield the inode of every socket a process holds."""
    folder = f"/proc/{pid}/fd"
    try:
        entries = os.listdir(folder)
    except OSError:
        return
    for entry in entries:
        try:
            link = os.readlink(f"{folder}/{entry}")
        except OSError:
            continue
        if link.startswith("socket:["):
            yield int(link[8:-1])


def _holders(wanted: Collection[int], but: Collection[int]) -> Iterator[tuple[int, int]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in but:
            yield from ((inode, int(entry)) for inode in _inodes(int(entry)) if inode in wanted)


def _name(pid: int | None) -> str:
    if pid is None:
        return ""
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""
