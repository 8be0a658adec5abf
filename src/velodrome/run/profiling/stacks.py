"""What py-spy writes (`-f raw`) as stacks of ours, each marked as waiting or working, and as a file for speedscope.

process 9:"gunicorn";process 12:"gunicorn";run (/…/site-packages/gunicorn/app/base.py:70) 3

Whether the innermost frame waits is known by the line of source that runs, as what it calls is no Python and unseen.
py-spy's own notion of idle threads is not used: it takes a thread for active that was woken to be sampled, and
knows the waiting frames of old Pythons only, under names that have changed since 3.11 (`select` is now
`EpollSelector.select`).
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from velodrome.guest import catalog
from velodrome.model import parts
from velodrome.model.profile import OPAQUE, WAITS, Stack, idle

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
_OUTSIDE = {("multiprocessing/resource_tracker.py", "main")}
"""Waits for its parent in a loop over a file."""


@cache
def _unblocked() -> tuple[str, ...]:
    return (*_UNBLOCKED, *(path for server in catalog.servers().values() for path in server.never_blocks))


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


_PROCESS = re.compile(r'process (\d+):"')
_THREAD = re.compile(r"^thread \((.*?)\)")
_FRAME = re.compile(r"^(.*) \((.*?)(?::(\d+))?\)$")
_INSTALLED = re.compile(r"^.*?/(?:site|dist)-packages/")
_LIBRARY = re.compile(r"^.*?/lib(?:64)?/python\d(?:\.\d+)?/")
_GUEST = re.compile(r"^.*/(?=velodrome/guest/)")


@dataclass(frozen=True)
class Seen:
    """One line: a stack as py-spy tells it."""

    process: str
    thread: str
    frames: tuple[tuple[str, str, int], ...]
    """Function, file and line."""
    count: int


def stacks_of(text: str, line_of: LineOf, handler_waits: bool, ticks: int) -> dict[Stack, int]:
    """Return the stacks of a recording. Raises ValueError for a line that py-spy would not write.

    `line_of` tells the text of a line of source; `handler_waits`: whether a woven handler, which has no source
    here, may be waiting in its own frame. Threads that were there through half of the `ticks` and never worked
    are left out where others did: a master, a resource tracker, a pool that nobody used would dilute the rest.
    """
    by_thread: dict[tuple[str, str], Counter[Stack]] = {}
    for seen in _lines(text):
        short = [f"{_safe(function)} ({_safe(shortened(file))})" for function, file, _ in seen.frames]
        mark = _mark(seen, line_of, handler_waits)
        stack = (f"process {seen.process}", *short, *([mark] if mark else []))
        by_thread.setdefault((seen.process, seen.thread), Counter())[stack] += seen.count
    at_work = [
        thread for thread in by_thread.values() if not all(map(idle, thread)) or thread.total() < ticks / 2
    ]
    found: Counter[Stack] = Counter()
    for thread in at_work or by_thread.values():
        found.update(thread)
    return dict(found)


def _lines(text: str) -> Iterator[Seen]:
    for number, line in enumerate(text.splitlines(), 1):
        stack_text, _, count = line.rpartition(" ")
        processes = _PROCESS.findall(stack_text)
        if not stack_text or not count.isdecimal() or not processes:
            raise ValueError(f"line {number} of the profile is '{line[:60]}'")
        # The command line of a process may hold anything but the end of its own quotation before a frame.
        head, quoted, rest = stack_text.rpartition('";')
        texts = [text for text in (rest if quoted and head else "").split(";") if text]
        thread = _THREAD.match(texts[0]) if texts else None
        frames = tuple(_frames(texts[1:] if thread else texts, number))
        yield Seen(processes[-1], thread[1] if thread else "", frames, int(count))


def _frames(texts: list[str], number: int) -> Iterator[tuple[str, str, int]]:
    for frame in texts:
        found = _FRAME.match(frame)
        if found is None:
            raise ValueError(f"line {number} of the profile has the frame '{frame[:60]}'")
        yield found[1], found[2], int(found[3] or 0)


def _mark(seen: Seen, line_of: LineOf, handler_waits: bool) -> str:
    if not seen.frames:
        return OPAQUE  # a thread of Python that is outside of it
    function, file, line = seen.frames[-1]
    leaf = Leaf(
        function, shortened(file), line_of(file, line), [shortened(frame[1]) for frame in seen.frames]
    )
    if waits(leaf, handler_waits):
        return WAITS
    return OPAQUE if in_c_loop(leaf) else ""


def shortened(file: str) -> str:
    """Return a path from its package on; of code that no package installed, its last two parts."""
    if file.startswith("<"):
        return file
    for beginning in (_GUEST, _INSTALLED, _LIBRARY):
        if beginning.match(file):
            return beginning.sub("", file, count=1)
    return "/".join(file.split("/")[-2:]) if "/" in file else file


def _safe(text: str) -> str:
    """Return text that cannot be taken for two frames."""
    return text.replace(";", ",").replace("\n", " ")


SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope_document(stacks: Mapping[Stack, int], name: str, rate_hz: float) -> str:
    """Return the file: one profile for each process, its weights in seconds."""
    numbers: dict[str, int] = {}
    by_process: dict[str, list[tuple[Stack, int]]] = {}
    for stack, count in stacks.items():
        by_process.setdefault(stack[0], []).append((stack[1:], count))
    profiles = [_profile(process, seen, numbers, rate_hz) for process, seen in by_process.items()]
    frames = [{"name": frame, "file": parts.path_of(frame)} for frame in numbers]
    return json.dumps(
        {
            "$schema": SCHEMA,
            "name": name,
            "exporter": "velodrome",
            "shared": {"frames": frames},
            "profiles": profiles,
        }
    )


def _profile(
    process: str, seen: list[tuple[Stack, int]], numbers: dict[str, int], rate_hz: float
) -> dict[str, Any]:
    weights = [round(count / rate_hz, 6) for _, count in seen]
    return {
        "type": "sampled",
        "name": process,
        "unit": "seconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [[numbers.setdefault(frame, len(numbers)) for frame in stack] for stack, _ in seen],
        "weights": weights,
    }
