"""Hold the server to its limits: by control groups where they are writable, else by affinity and rlimits.

A limit that can be held by neither is an error with a cure, never ignored. The groups are made and removed by
the warden of the server (`warden.py`); what a killed warden left behind is swept before the next race.
"""

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from velodrome.model.errors import LimitError, StartRefusedError
from velodrome.model.load import Limits
from velodrome.run.supervision import python
from velodrome.run.supervision.ward import Group, Order, Ward
from velodrome.run.supervision.warden import end_group, remove_group, start_time

LEAST_MEMORY = 16 * 2**20
"""Bytes. An idle CPython and the libraries it maps need about 10 MB; below this nothing could ever start."""
PREFIX = "velodrome"
CONTROLLERS = ("cpuacct", "cpuset", "freezer", "memory")


@dataclass(frozen=True)
class Hierarchy:
    """Where groups of one controller can be made: the folder they go under, and the version of cgroups."""

    version: int
    parent: Path


@dataclass(frozen=True)
class Bounds:
    """What the warden has to set up for a server."""

    enforced_by: str
    """As in `Placement.enforced_by`."""
    groups: tuple[Group, ...] = ()
    rlimits: Mapping[str, int] = field(default_factory=dict)
    account: Path | None = None
    """A group that holds the server alone and accounts for its CPU."""
    notes: tuple[str, ...] = ()

    def fresh(self) -> "Bounds":
        """Return the same bounds by control groups of a new name: those of one server are never another's."""
        name = group_name()
        groups = tuple(Group(str(Path(group.path).with_name(name)), group.settings) for group in self.groups)
        return replace(self, groups=groups, account=self.account.with_name(name) if self.account else None)


def hierarchies(
    mounts: str | None = None, mine: str | None = None, writable: bool = True
) -> Mapping[str, Hierarchy]:
    """Return where velodrome may make groups, by controller; empty where it may not.

    `mounts` and `mine` are the texts of /proc/self/mountinfo and /proc/self/cgroup. Groups are made below the
    group velodrome itself is in, so that bounds set on velodrome also bound its servers.
    """
    if mounts is None or mine is None:
        if sys.platform != "linux":
            return {}
        mounts = Path("/proc/self/mountinfo").read_text()
        mine = Path("/proc/self/cgroup").read_text()
    own = {names: path for _, names, path in (line.split(":", 2) for line in mine.splitlines())}
    found: dict[str, Hierarchy] = {}
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, mount = before.split()[3:5]
        kind, _, options = after.split()[:3]
        if kind == "cgroup":
            for names, path in own.items():
                if names and set(names.split(",")) <= set(options.split(",")):
                    folder = below(Path(mount), root, path)
                    if not writable or os.access(folder, os.W_OK):
                        for name in set(names.split(",")) & set(CONTROLLERS):
                            found[name] = Hierarchy(1, folder)
        elif kind == "cgroup2" and "" in own:
            for name, folder in _delegated(Path(mount), below(Path(mount), root, own[""])).items():
                found.setdefault(name, Hierarchy(2, folder))
    return found


def below(mount: Path, root: str, path: str) -> Path:
    """Return where the group `path` is to be seen; inside a container that may be the mount point itself."""
    with suppress(ValueError):
        folder = mount / Path(path).relative_to(root)
        if folder.is_dir():
            return folder
    return mount


def _delegated(mount: Path, own: Path) -> Mapping[str, Path]:
    """Return the nearest group above velodrome, by controller, that hands this controller to new groups (v2).

    A group with processes in it cannot hand on controllers, so velodrome's own will not do, its parent may.
    """
    found: dict[str, Path] = {}
    for folder in [own, *own.parents]:
        if folder != mount and mount not in folder.parents:
            break
        if os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK):
            found.setdefault("cpuacct", folder)  # every v2 group accounts for CPU
            with suppress(OSError):
                handed = (folder / "cgroup.subtree_control").read_text().split()
                for name in set(handed) & set(CONTROLLERS):
                    found.setdefault(name, folder)
    return found


def group_name() -> str:
    """Return a fresh name that tells whose it is: PID namespace, process, when that was started, and a random part."""
    own = os.getpid()
    return f"{PREFIX}-{_namespace()}-{own}-{start_time(own)}-{secrets.token_hex(4)}"


def _namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def bounds(
    limits: Limits, server_cpus: Sequence[int], where: Mapping[str, Hierarchy] | None = None
) -> Bounds:
    """Return how to hold a server to `limits` on this machine. Raises LimitError when that is impossible."""
    _check(limits)
    where = hierarchies() if where is None else where
    name = group_name()
    groups: dict[Path, list[tuple[str, str]]] = {}
    versions = set()
    account = None
    if "freezer" in where:  # to end all that is in it at once; a v2 group can do so by itself
        groups[where["freezer"].parent / name] = []
    if "cpuacct" in where:
        account = where["cpuacct"].parent / name
        groups[account] = []
    if limits.cpus is not None and "cpuset" in where:
        groups.setdefault(where["cpuset"].parent / name, []).extend(_cpuset(where["cpuset"], server_cpus))
        versions.add(where["cpuset"].version)
    if limits.memory_bytes is not None and "memory" in where:
        groups.setdefault(where["memory"].parent / name, []).extend(
            _memory(where["memory"], limits.memory_bytes)
        )
        versions.add(where["memory"].version)
    made = tuple(Group(str(path), tuple(settings)) for path, settings in groups.items())
    by_group = bool(versions) and (limits.memory_bytes is None or "memory" in where)
    if by_group:
        return Bounds(" and ".join(f"cgroup v{v}" for v in sorted(versions)), made, account=account)
    return _without_groups(limits, made, account)


def _without_groups(limits: Limits, groups: tuple[Group, ...], account: Path | None) -> Bounds:
    if sys.platform != "linux":
        if limits == Limits():
            return Bounds("nothing")
        wanted = f"cpus = {limits.cpus}" if limits.cpus is not None else f"memory = {limits.memory_bytes}"
        raise LimitError(
            wanted, "this system enforces neither affinity nor memory", "Run this study on Linux"
        )
    if limits.memory_bytes is None:
        return Bounds("affinity and rlimits", groups, account=account)
    note = (
        "no control group for memory is writable: RLIMIT_AS bounds the address space of each process of the "
        "server, not the memory of all of them"
    )
    rlimits = {"RLIMIT_AS": limits.memory_bytes}
    return Bounds("affinity and rlimits", groups, rlimits, account, (note,))


def _check(limits: Limits) -> None:
    memory = limits.memory_bytes
    if memory is not None and memory < LEAST_MEMORY:
        raise LimitError(
            f"memory = {memory} bytes",
            f"no Python server starts in less than {LEAST_MEMORY >> 20} MiB",
            "Give more, or leave the limit out",
        )


def _cpuset(where: Hierarchy, cpus: Sequence[int]) -> list[tuple[str, str]]:
    settings = [("cpuset.cpus", ",".join(map(str, cpus)))]
    if where.version == 1:  # a v1 group has no memory nodes until it is given some, and takes no process
        settings.insert(0, ("cpuset.mems", (where.parent / "cpuset.mems").read_text().strip()))
    return settings


def _memory(where: Hierarchy, limit: int) -> list[tuple[str, str]]:
    if where.version == 2:
        settings = [("memory.max", str(limit))]
        if (where.parent / "memory.swap.max").exists():
            settings.append(("memory.swap.max", "0"))
        return settings
    settings = [("memory.limit_in_bytes", str(limit))]
    if (where.parent / "memory.memsw.limit_in_bytes").exists():
        settings.append(("memory.memsw.limit_in_bytes", str(limit)))
    return settings


def usable_hierarchies(limits: Limits, server_cpus: Sequence[int]) -> Mapping[str, Hierarchy]:
    """Return the hierarchies in which a group for these limits could be made and joined, just now.

    Permissions on files do not tell the whole truth (a v2 group may refuse processes), so a group is made and a process
    started in it.
    """
    where = hierarchies()
    for names in (set(where), set()):
        some = {name: where[name] for name in where if name in names}
        tried = bounds(limits, server_cpus, some)
        try:
            probe = Order(python.alone("-c", ""), {}, cpus=tuple(server_cpus), groups=tried.groups)
            with Ward(probe) as ward:
                ward.wait(10.0)
        except StartRefusedError as refused:
            if refused.stage == "group" and names:
                continue
            raise
        return some
    raise AssertionError("without groups there is nothing to refuse")


def sweep(where: Mapping[str, Hierarchy] | None = None) -> int:
    """End and remove what killed velodromes and wardens left in control groups; return how many groups.

    The name of a group tells the process that made it by its number and its start, which are together never another's.
    Whatever is in it is of a server: nobody else puts processes there.
    """
    swept = 0
    found = hierarchies() if where is None else where
    groups = [
        group
        for folder in {hierarchy.parent for hierarchy in found.values()}
        for group in folder.glob(f"{PREFIX}-{_namespace()}-*-*-*")
        if _is_orphan(group.name)
    ]
    for group in sorted(groups, key=lambda group: not (group / "freezer.state").exists()):
        end_group(str(group))
    for group in groups:
        swept += remove_group(str(group))
    return swept


def _is_orphan(name: str) -> bool:
    """Return whether the process that made a group of this name has ended; no for any other name."""
    pid, start = name.split("-")[2:4]
    return pid.isdecimal() and start.isdecimal() and start_time(int(pid)) != int(start)
