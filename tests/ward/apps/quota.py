"""`throttled`: a control group whose quota is one CPU, and two processes that compute; cured by no group.

Whoever runs the ward makes the group (`tests/ward/cells.py`), and lets everybody join it.
"""

import contextlib
import os

from answering import answering

GROUP = "/sys/fs/cgroup/cpu/velodrome-ward"


async def computes():
    value = 0
    for number in range(200_000):
        value += number


def join():
    # The first process as well: what is asked of the server is asked of it.
    for pid in (os.getppid(), os.getpid()):
        with contextlib.suppress(OSError), open(os.path.join(GROUP, "cgroup.procs"), "w") as file:
            file.write(str(pid))


def __getattr__(name):
    if name not in ("severe", "cured"):
        raise AttributeError(name)
    if name == "severe":
        join()
    return answering(computes)
