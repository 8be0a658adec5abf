"""The first and the second step of a process of velodrome's own, by what `python.start_own` says on its command line.

    rest = own_process.pin()           # --cpus 1 --user 1000:1000:27
    from velodrome import _native         # its threads inherit the CPUs; only root may be able to read where it lies
    own_process.give_up_root()

Engine, relay, third party and holder of idle connections take bytes from servers and apps. Where these run as an
ordinary user, so do they. Of root they keep the right to be scheduled before others (CAP_SYS_NICE), by which a request
is sent when it is due, and limits that are raised while they may.
"""

import os
import resource
import sys

RAISED = {"RLIMIT_NOFILE": 1 << 20, "RLIMIT_MEMLOCK": 64 << 20}
"""Descriptors, one for each connection; and memory that cannot be swapped out, as which io_uring's rings count before
Linux 5.12."""
PR_SET_KEEPCAPS = 8
PR_SET_NO_NEW_PRIVS = 38
"""Programs whose file belongs to root no longer become root."""
CAPABILITY_VERSION = 0x20080522
"""_LINUX_CAPABILITY_VERSION_3 of linux/capability.h: two words of 32 bits for each set."""
SYS_NICE = 1 << 23


def pin() -> list[str]:
    """Pin this process to the CPUs of its command line, and return the arguments after those of `python.start_own`."""
    if (cpus := _value("--cpus")) and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    return sys.argv[5:]


def give_up_root(keep: int = SYS_NICE) -> None:
    """Become the user of its command line for good; without a user, go on as whoever started this process.

    `keep`: capabilities that stay. Raises OSError where it may not.
    """
    if identity := _value("--user"):
        become(identity, keep)


def become(identity: str, keep: int = 0) -> None:
    """Become a user (`Account.identity`) for good, and keep these capabilities alone. Raises OSError."""
    for name, wanted in RAISED.items():
        raise_limit(name, wanted)
    uid, gid, *groups = map(int, identity.split(":"))
    os.setgroups(groups)
    os.setgid(gid)
    _set_user(uid, keep)


def _set_user(uid: int, keep: int) -> None:
    """Become a user, and keep some capabilities of those there are; all others go. See capabilities(7)."""
    if sys.platform != "linux":
        os.setuid(uid)
        return
    import ctypes  # noqa: PLC0415 - 5 ms, for root alone

    system = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    # Effective, permitted, inheritable; then the same for capabilities from 32 on.
    sets = (ctypes.c_uint32 * 6)()
    system.capget(header, sets)
    kept = sets[1] & keep
    system.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    if not keep:
        system.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.setuid(uid)
    if system.capset(header, (ctypes.c_uint32 * 6)(kept, kept)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def raise_limit(name: str, wanted: int) -> None:
    """Raise a limit to what is wanted, if it is less: with the right to, else as far as it goes without."""
    if (number := getattr(resource, name, None)) is None:  # not on every system
        return
    soft, hard = (
        sys.maxsize if limit == resource.RLIM_INFINITY else limit for limit in resource.getrlimit(number)
    )
    if soft < wanted:
        kept = -1 if hard == sys.maxsize else hard
        for new in ((wanted, max(hard, wanted) if hard < sys.maxsize else -1), (min(wanted, hard), kept)):
            try:
                resource.setrlimit(number, new)
                return
            except (ValueError, OSError):  # contextlib would take 2 ms of a load's start
                continue


def in_words(error: Exception) -> str:
    """Return what went wrong here, for the parent of this process."""
    try:
        from velodrome.run.faults import as_velodrome_error  # noqa: PLC0415 - only where it failed

        return str(as_velodrome_error(error))
    except (ImportError, OSError):  # this user may not read where velodrome lies
        return f"{type(error).__name__}: {error}"


def _value(option: str) -> str:
    """Return the value of `--cpus` or `--user`; empty: none, or started by hand without it."""
    return dict(zip(sys.argv[1:5:2], sys.argv[2:5:2], strict=False)).get(option, "")
