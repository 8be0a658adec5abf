"""For how long the control groups of a process kept it from the CPU, because their quota was spent (cgroups(7)).

    throttling = Throttling(pid)
    throttling.seconds()          # since the groups were made; None: no group of it tells

A quota may be set on any group above: in a container the group that counts is often the outermost that can be seen.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from velodrome.run.machine.limits import below

UNITS_S = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
"""Of version 2 and of version 1."""


class Throttling:
    """The groups that a process is in when this is made, and all above them."""

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        self._files: tuple[Path, ...] = ()
        with suppress(OSError, ValueError):
            mounts = (proc / "self" / "mountinfo").read_text()
            groups = (proc / str(pid) / "cgroup").read_text()
            self._files = tuple(_files(mounts, groups))

    def seconds(self) -> float | None:
        """Return the sum over these groups; None where none of them tells."""
        known = [found for file in self._files if (found := _throttled_s(file)) is not None]
        return sum(known) if known else None

    def periods(self) -> tuple[int, int] | None:
        """Return periods in which a quota was in force, and those in which it was spent, of all these groups.

        None where none of them tells.
        """
        counted = [found for file in self._files if (found := _periods(file)) is not None]
        return (sum(count for count, _ in counted), sum(count for _, count in counted)) if counted else None


def _files(mounts: str, groups: str) -> Iterator[Path]:
    """Yield `cpu.stat` of each group, the innermost first."""
    own = {names: path for _, names, path in (line.split(":", 2) for line in groups.splitlines())}
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        root, mount = before.split()[3:5]
        kind, _, options = after.split()[:3]
        if kind == "cgroup" and "cpu" in options.split(","):
            path = next((path for names, path in own.items() if "cpu" in names.split(",")), None)
        elif kind == "cgroup2":
            path = own.get("")
        else:
            continue
        if path is None:
            continue
        top = Path(mount)
        folder = below(top, root, path)
        for parent in (folder, *folder.parents):
            if (parent / "cpu.stat").exists():
                yield parent / "cpu.stat"
            if parent == top:
                break


def _fields(file: Path) -> dict[str, str]:
    return dict(line.split() for line in file.read_text().splitlines())


def _periods(file: Path) -> tuple[int, int] | None:
    try:
        fields = _fields(file)
        return int(fields["nr_periods"]), int(fields["nr_throttled"])
    except (OSError, ValueError, KeyError):
        return None


def _throttled_s(file: Path) -> float | None:
    try:
        fields = _fields(file)
        return next(int(fields[name]) * unit for name, unit in UNITS_S.items() if name in fields)
    except (OSError, ValueError, StopIteration):
        return None  # the group has gone, or has no quota to tell of
