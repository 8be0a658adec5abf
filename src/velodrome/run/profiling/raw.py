"""Read what py-spy writes (`-f raw`) into stacks of ours: short paths, one process in front, waiting marked.

process 9:"gunicorn";process 12:"gunicorn";run (/…/site-packages/gunicorn/app/base.py:70) 3
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from velodrome.model.profile import OPAQUE, WAITS, Stack, idle
from velodrome.run.profiling import waiting
from velodrome.run.profiling.waiting import Leaf, LineOf

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


def stacks(text: str, line_of: LineOf, handler_waits: bool, ticks: int) -> dict[Stack, int]:
    """Return the stacks of a recording. Raises ValueError for a line that py-spy would not write.

    `line_of` tells the text of a line of source; `handler_waits`: whether a woven handler, which has no source
    here, may be waiting in its own frame. Threads that were there through half of the `ticks` and never worked
    are left out where others did: a master, a resource tracker, a pool that nobody asked would dilute the rest.
    """
    by_thread: dict[tuple[str, str], Counter[Stack]] = {}
    for seen in _lines(text):
        short = [f"{_safe(function)} ({_safe(shortened(file))})" for function, file, _ in seen.frames]
        mark = _mark(seen, line_of, handler_waits)
        stack = (f"process {seen.process}", *short, *([mark] if mark else []))
        by_thread.setdefault((seen.process, seen.thread), Counter())[stack] += seen.count
    at_work = [one for one in by_thread.values() if not all(map(idle, one)) or one.total() < ticks / 2]
    found: Counter[Stack] = Counter()
    for one in at_work or by_thread.values():
        found.update(one)
    return dict(found)


def _lines(text: str) -> Iterator[Seen]:
    for number, line in enumerate(text.splitlines(), 1):
        told, _, count = line.rpartition(" ")
        processes = _PROCESS.findall(told)
        if not told or not count.isdecimal() or not processes:
            raise ValueError(f"line {number} of the profile is '{line[:60]}'")
        # The command line of a process may hold anything but the end of its own quotation before a frame.
        head, quoted, rest = told.rpartition('";')
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
    leaf = Leaf(function, shortened(file), line_of(file, line), [shortened(one[1]) for one in seen.frames])
    if waiting.waits(leaf, handler_waits):
        return WAITS
    return OPAQUE if waiting.in_c_loop(leaf) else ""


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
