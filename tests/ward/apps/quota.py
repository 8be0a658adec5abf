"""`throttled`: a control group whose quota is one CPU, and threads that compute on two; cured by no group.

Whoever runs the ward makes the group (`tests/ward/cells.py`), and lets everybody join it. One process, so that no
worker can be left without connections: hashing releases the interpreter's lock, and each thread has a CPU.
"""

import asyncio
import contextlib
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

from answering import answering

GROUP = "/sys/fs/cgroup/cpu/velodrome-ward"
DATA = bytes(4_000_000)
THREADS = ThreadPoolExecutor(4, "hashing")


async def hashes():
    await asyncio.get_running_loop().run_in_executor(THREADS, hashlib.sha256, DATA)


def join():
    # The first process as well: what is read of a server may be read of it.
    for pid in (os.getppid(), os.getpid()):
        with contextlib.suppress(OSError), open(os.path.join(GROUP, "cgroup.procs"), "w") as file:
            file.write(str(pid))


def __getattr__(name):
    if name not in ("severe", "cured"):
        raise AttributeError(name)
    if name == "severe":
        join()
    return answering(hashes)
