"""A heartbeat beside an event loop: when the loop is late, whose code holds it up, and does that compute or wait?

    heart = Heart("/tmp/x", late_s=0.01)
    heart.watch(asyncio.base_events.BaseEventLoop)

A thread asks the loop for a sign of life every few milliseconds. While none comes, it takes the stack of the loop's
thread again and again, and reads from the kernel how long that thread ran, and how long it was ready and had no CPU
(/proc/self/task/TID/schedstat): what is left of the time it was *blocked*, and whether other threads
of the process ran meanwhile (`others_s`). The asyncio log of slow callbacks, which
comes afterwards, names the callback alone and cannot tell the two apart.

`heart-<pid>.jsonl` in the folder gets a line for each time the loop was late (`stall`), one for each collection of
garbage that took a millisecond and was not begun by the heartbeat itself (`gc`), and every half second one on what was
seen since (`seen`). Times are seconds of `time.monotonic`, which all processes of a machine share on Linux.
"""

from __future__ import annotations

import gc
import json
import linecache
import os
import sys
import threading
import time
from contextlib import suppress
from types import CodeType, FrameType
from typing import IO, Any, Dict, List, NamedTuple, Optional, Tuple

INTERVAL_S = 0.005
"""Between two heartbeats, and between two stacks of one stall."""
SEEN_S = 0.5
"""Between two lines on what was seen."""
EVERY = 4
"""Every so manieth heartbeat takes a stack of each thread, which shows where time goes."""
DEPTH = 30
"""Frames told of a stack, the innermost first."""
SHORT_GC_S = 0.001
LINE = 200
"""Characters told of a line of source."""
AWAITS = 0x80 | 0x200
"""Flags of the code of an `async def`, plain or a generator: CO_COROUTINE, CO_ASYNC_GENERATOR."""
IDLE = {"select", "poll", "run_forever", "run_until_complete", "_run_once", "_worker", "wait", "get", "run"}
"""Innermost functions of a thread that has nothing to do, as far as the standard library's loops and pools go."""
POOLS = ("AnyIO worker thread", "asyncio_", "ThreadPoolExecutor-")
"""Beginnings of the names of threads that are counted."""
LIBRARIES = ("anyio", "aiohttp", "sqlalchemy", "logging", "asyncio", "uvloop", "gevent", "httpx", "requests")


class Usage(NamedTuple):
    """Of one thread since it began, seconds."""

    at: float
    ran: float
    waited_for_cpu: float


class Loop:
    """A loop that runs, and the thread that runs it."""

    def __init__(self, loop: Any) -> None:
        self.loop = loop
        self.ident = threading.get_ident()
        native = getattr(threading, "get_native_id", None)  # Python 3.8
        self._schedule: Optional[int] = None
        if native is not None:
            with suppress(OSError):  # no Linux, or a kernel without it
                self._schedule = os.open("/proc/self/task/%d/schedstat" % native(), os.O_RDONLY)

    def usage(self) -> Optional[Usage]:
        """Return what its thread used until now; None: this system does not say."""
        if self._schedule is None:
            return None
        try:
            ran, waited, _ = os.pread(self._schedule, 100, 0).split()
        except (OSError, ValueError):  # the thread has ended
            return None
        return Usage(time.monotonic(), int(ran) / 1e9, int(waited) / 1e9)

    def close(self) -> None:
        """Give back what it holds."""
        if self._schedule is not None:
            os.close(self._schedule)
            self._schedule = None


class Place(NamedTuple):
    """Where a thread was while the loop was late, and for how long."""

    frames: Tuple[Dict[str, Any], ...]
    seconds: float
    ran_s: float
    blocked_s: float


class Heart:
    """Watches the loop of a process: the one that was started last, which in servers is the one that serves."""

    def __init__(self, folder: str, late_s: float) -> None:
        self._folder, self._late_s = folder, late_s
        self._loop: Optional[Loop] = None
        self._file: Optional[IO[str]] = None
        self._began_gc, self._ident = 0.0, 0
        self._samples = {"all": 0, "logging": 0}
        self._threads: Dict[str, int] = {}
        self._late = 0.0
        self._lines = threading.Lock()
        gc.callbacks.append(self._collected)
        self._start()

    def watch(self, cls: Any) -> None:
        """Have every loop of a class watched from when it runs."""
        before = cls.run_forever

        def run_forever(loop: Any) -> Any:
            mine = self._loop = Loop(loop)
            try:
                return before(loop)
            finally:
                if self._loop is mine:
                    self._loop = None
                mine.close()

        cls.run_forever = run_forever

    def forked(self) -> None:
        """Begin anew in a process that was forked: threads stay behind."""
        self._file, self._loop, self._lines = None, None, threading.Lock()
        self._start()

    def _start(self) -> None:
        threading.Thread(target=self._beat, name="velodrome-heartbeat", daemon=True).start()

    def _beat(self) -> None:
        self._ident = threading.get_ident()
        beats = 0
        told = time.monotonic()
        while True:
            beats += 1
            watched = self._loop
            if watched is not None:
                self._listen(watched)
            if not beats % EVERY:
                self._sample(watched)
            now = time.monotonic()
            if now - told >= SEEN_S:
                self._tell_seen(now - told)
                told = now
            time.sleep(INTERVAL_S)

    def _listen(self, watched: Loop) -> None:
        beat = threading.Event()
        before, used = watched.usage(), time.process_time()
        asked = time.monotonic()
        try:
            watched.loop.call_soon_threadsafe(beat.set)
        except RuntimeError:  # it has been closed
            return
        if beat.wait(self._late_s):
            return
        places: List[Place] = []
        since = asked
        while not beat.is_set() and self._loop is watched:
            frames = told(sys._current_frames().get(watched.ident))
            if beat.is_set():  # the stack is of what came afterwards
                frames = places[-1].frames if places else ()
            beat.wait(INTERVAL_S)
            now, after = time.monotonic(), watched.usage()
            ran = after.ran - before.ran if after and before else 0.0
            queued = after.waited_for_cpu - before.waited_for_cpu if after and before else 0.0
            blocked = max(0.0, now - since - ran - queued) if after and before else 0.0
            places.append(Place(frames, now - since, ran, blocked))
            since, before = now, after
        length = time.monotonic() - asked
        self._late += length
        others = time.process_time() - used - sum(one.ran_s for one in places)
        line = {"stall": length, "at": asked, "others_s": max(0.0, others)}
        self._write({**line, "places": [one._asdict() for one in joined(places)]})

    def _sample(self, watched: Optional[Loop]) -> None:
        """Take a stack of each thread, but of those that are idle."""
        names = {one.ident: one.name for one in threading.enumerate()}
        mine = threading.get_ident()
        for ident, frame in sys._current_frames().items():
            if ident == mine or frame.f_code.co_name in IDLE:
                continue
            self._samples["all"] += 1
            if _is_in(frame, os.path.join("logging", "__init__.py")):
                self._samples["logging"] += 1
        counts: Dict[str, int] = {}
        for name in names.values():
            for pool in POOLS:
                if name.startswith(pool):
                    counts[pool] = counts.get(pool, 0) + 1
        for pool, count in counts.items():
            self._threads[pool] = max(self._threads.get(pool, 0), count)

    def _tell_seen(self, seconds: float) -> None:
        line = {
            "seen": seconds,
            "at": time.monotonic(),
            "loop": type(self._loop.loop).__module__ if self._loop is not None else None,
            "late_s": self._late,
            "samples": dict(self._samples),
            "threads": dict(self._threads),
            "libraries": [name for name in LIBRARIES if name in sys.modules],
        }
        self._late, self._samples, self._threads = 0.0, {"all": 0, "logging": 0}, {}
        self._write(line)

    def _collected(self, phase: str, info: Dict[str, int]) -> None:
        now = time.monotonic()
        if phase == "start":
            self._began_gc = now
        elif threading.get_ident() == self._ident:
            return  # the heartbeat's own garbage
        elif now - self._began_gc >= SHORT_GC_S and self._lines.acquire(False):
            # Never waits: a collection can begin while this thread writes a line of its own.
            self._lines.release()
            self._write({"gc": now - self._began_gc, "at": self._began_gc, "generation": info["generation"]})

    def _write(self, line: Dict[str, Any]) -> None:
        if not self._lines.acquire(timeout=0.1):
            return
        try:
            if self._file is None:
                name = "heart-%d.jsonl" % os.getpid()
                self._file = open(os.path.join(self._folder, name), "a")  # noqa: SIM115 - as long as the process
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
        finally:
            self._lines.release()


def joined(places: List[Place]) -> List[Place]:
    """Return places with those of one stack, one after the other, made one."""
    found: List[Place] = []
    for one in places:
        if found and found[-1].frames == one.frames:
            last = found[-1]
            found[-1] = Place(
                one.frames,
                last.seconds + one.seconds,
                last.ran_s + one.ran_s,
                last.blocked_s + one.blocked_s,
            )
        else:
            found.append(one)
    return found


def told(frame: Optional[FrameType]) -> Tuple[Dict[str, Any], ...]:
    """Return a stack as plain data, the innermost frame first."""
    found: List[Dict[str, Any]] = []
    while frame is not None and len(found) < DEPTH:
        code = frame.f_code
        found.append(
            {
                "file": code.co_filename,
                "function": code.co_name,
                "own": is_own(code.co_filename),
                "awaits": bool(code.co_flags & AWAITS),
                "text": linecache.getline(code.co_filename, frame.f_lineno).rstrip()[:LINE],
                **place_of(code, frame),
            }
        )
        frame = frame.f_back
    return tuple(found)


def place_of(code: CodeType, frame: FrameType) -> Dict[str, Any]:
    """Return where in its file a frame is: of Python 3.11 and newer also in which columns."""
    positions = getattr(code, "co_positions", None)
    if positions is not None and frame.f_lasti >= 0:
        for number, (line, end_line, column, end_column) in enumerate(positions()):
            if number == frame.f_lasti // 2 and line is not None:
                return {"line": line, "end_line": end_line, "column": column, "end_column": end_column}
    return {"line": frame.f_lineno, "end_line": frame.f_lineno}


_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_GUEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_INSTALLED = ("%ssite-packages%s" % (os.sep, os.sep), "%sdist-packages%s" % (os.sep, os.sep))


def is_own(file: str) -> bool:
    """Whether a file is the app's own, and not of the standard library, a package, or velodrome."""
    if file.startswith(("<", _STANDARD, _GUEST)):
        return False
    return not any(part in file for part in _INSTALLED)


def _is_in(frame: Optional[FrameType], end: str) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.endswith(end):
            return True
        frame = frame.f_back
    return False
