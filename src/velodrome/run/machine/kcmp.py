"""Whether two processes share an open file, as the kernel knows it (kcmp(2)).

same_file(4711, 5, 4712, 5)     # True: one was forked from the other, which had opened it before
"""

import ctypes
import os
import platform

NUMBERS = {"x86_64": 312, "aarch64": 272, "riscv64": 272}
"""Of the system call, by machine."""
KCMP_FILE = 0


def same_file(pid: int, descriptor: int, other: int, others: int) -> bool | None:
    """Return whether both descriptors are of one open file; None: this system does not tell, or one has gone."""
    number = NUMBERS.get(platform.machine())
    if number is None or platform.system() != "Linux":
        return None
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    found = call(*map(ctypes.c_long, (number, pid, other, KCMP_FILE, descriptor, others)))
    return None if found < 0 else bool(found == 0)


def tells() -> bool:
    """Return whether this system tells at all."""
    reading, writing = os.pipe()
    try:
        return same_file(os.getpid(), reading, os.getpid(), reading) is True
    finally:
        os.close(reading)
        os.close(writing)
