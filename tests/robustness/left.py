"""What a killed velodrome leaves: its processes, folders and control groups, found without its own help."""

import os
from pathlib import Path

import psutil

from velodrome.run.machine import limits
from velodrome.run.supervision.scratch import MARK
from velodrome.run.supervision.ward import WARDEN

TOKEN = "VELODROME_ROBUSTNESS_TEST"
"""Environment variable that velodrome, its wardens and helpers inherit; its servers do not."""
SOON_S = 15.0


def alive(velodrome: int, token: str) -> list[psutil.Process]:
    """Return the processes of a velodrome, but for itself: by the token, by the mark, by their home."""
    found = []
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            zombie = process.status() == psutil.STATUS_ZOMBIE
        except (psutil.Error, OSError):
            continue
        ours = (
            environment.get(TOKEN) == token
            or f":{velodrome}:" in environment.get(MARK, "")
            or f"velodrome-{velodrome}-" in environment.get("HOME", "")
        )
        if ours and not zombie and process.pid != velodrome:
            found.append(process)
    return found


def supervisors(velodrome: int, token: str) -> tuple[list[int], list[int]]:
    """Return its sentinels and its wardens."""
    wardens = [process for process in alive(velodrome, token) if str(WARDEN) in process.cmdline()]
    sentinels = [warden.pid for warden in wardens if warden.ppid() == velodrome]
    return sentinels, [warden.pid for warden in wardens if warden.pid not in sentinels]


def folders(velodrome: int, place: Path = Path("/tmp")) -> list[Path]:
    return list(place.glob(f"velodrome-{velodrome}-*"))


def groups(velodrome: int) -> list[Path]:
    parents = {hierarchy.parent for hierarchy in limits.hierarchies().values()}
    return [group for parent in parents for group in parent.glob(f"velodrome-*-{velodrome}-*")]


def kill(pids: list[int]) -> None:
    """Kill at once; some may have ended by themselves since they were looked up."""
    for pid in pids:
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            continue
