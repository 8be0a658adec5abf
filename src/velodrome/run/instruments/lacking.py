"""What this system does not show, and which diagnoses fall away or weaken by it: said before anything is measured.

    for sentence in lacking():
        print(sentence)

The doctor needs no ptrace and no root: the heartbeat runs in the server's own process, and everything else is /proc.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from velodrome.run.measuring import kernel


def lacking(proc: Path = Path("/proc"), platform: str = sys.platform) -> Iterator[str]:
    """Yield a sentence for each thing, with its cure."""
    if platform != "linux":
        yield (
            f"{platform} does not say whether a late event loop waits or computes, so blocking-call and gil-convoy "
            "cannot be proven: examine the app on Linux"
        )
        return
    if not (proc / "self" / "schedstat").exists():
        yield (
            "this kernel does not say whether a late event loop waits or computes (no /proc/self/schedstat), so "
            "blocking-call and gil-convoy cannot be proven: examine the app on a kernel with CONFIG_SCHED_INFO"
        )
    if not os.access(proc / "1" / "stat", os.R_OK):
        yield (
            "processes of other users are hidden here (/proc is mounted with hidepid), so their load is not seen and "
            "may make arms noisy: let nothing else run, or examine as a user of the group that /proc is mounted with"
        )
    if kernel.Throttling(os.getpid(), proc).seconds() is None:
        yield (
            "no control group says here for how long it kept the server from the CPU, so the timeline has no "
            "throttling, and throttled cannot be proven: mount cgroups with the cpu controller to see it"
        )
    if not kernel.tells_open_files():
        yield (
            "this kernel does not say whether processes share an open file (kcmp), so shared-epoll cannot be proven: "
            "examine the app where kcmp is allowed (in a container, by its seccomp profile)"
        )
