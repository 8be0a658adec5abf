"""Which innermost frames wait: told by the line of source that runs, as what it calls is no Python and unseen.

py-spy's own notion of idle threads is not used: it takes a thread for active that was woken to be sampled, and
knows the waiting frames of old Pythons only, under names that have changed since 3.11 (`select` is now
`EpollSelector.select`).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from velodrome.guest import catalog

LineOf = Callable[[str, int], str]
"""Given a file and a line, its text, or nothing."""

_CALLS = re.compile(
    r"""
    (?:^|\W)_?(?:accept|select|poll|sleep|acquire|waitpid|pause|read_events|next_event|sigwaitinfo|sigtimedwait)\(
    | \w*wait\(                       # Event.wait, epoll_wait, io_uring_submit_and_wait
    | queue\w*\.get\(                 # a dictionary's get does not wait
    | (?:^|\W)os\.read\(
    | \.join\(\s*(?:timeout[^)]*)?\)  # a thread's; a string's has something to join
    """,
    re.VERBOSE | re.IGNORECASE,
)
_RECEIVES = re.compile(
    r"(?:recv|recv_into|recvfrom|recvmsg|readinto|_accept|accept|readline)\(", re.IGNORECASE
)
"""Wait where the socket blocks; with an event loop around them they do not."""
_LOOPS = re.compile(r"(?:run_until_complete|run_forever|uv_run|\bloop\.run)\(")
_UNBLOCKED = (
    "asyncio/",
    "gevent/",
    "trio/",
    "velodrome/guest/raw/connection.py",
)
"""Files whose sockets never block, beside those of servers, whose stacks declare them."""


@cache
def _unblocked() -> tuple[str, ...]:
    return (*_UNBLOCKED, *(path for one in catalog.servers().values() for path in one.never_blocks))


_OUTSIDE = {("multiprocessing/resource_tracker.py", "main")}
"""Waits for its parent in a loop over a file."""


@dataclass(frozen=True)
class Leaf:
    """The innermost frame of a stack."""

    function: str
    path: str
    line: str
    """Text of the line that runs; empty where the source is not known."""
    paths: Sequence[str]
    """Of all frames of the stack."""


def waits(leaf: Leaf, handler_waits: bool) -> bool:
    """Whether the line that runs waits."""
    if leaf.path.startswith("<velodrome"):
        return handler_waits
    if (leaf.path, leaf.function.rpartition(".")[2]) in _OUTSIDE:
        return True
    if "await " in leaf.line:
        return False  # a coroutine that waits is on no stack
    if _RECEIVES.search(leaf.line):
        return not any(path.startswith(_unblocked()) for path in leaf.paths)
    return bool(_CALLS.search(leaf.line))


def in_c_loop(leaf: Leaf) -> bool:
    """Whether what runs is an event loop written in C, or a thread of C alone: it waits or works there."""
    thread = leaf.path == "threading.py" and leaf.function.rpartition(".")[2] == "run"
    return thread or bool(_LOOPS.search(leaf.line))
