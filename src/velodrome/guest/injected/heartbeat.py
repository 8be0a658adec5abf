"""A heartbeat beside an event loop: when the loop is late, whose code holds it up, and does that compute or wait?

    heart = Heart("/tmp/x", late_s=0.01)
    heart.watch(asyncio.base_events.BaseEventLoop)      # gevent, trio and old Tornado: watch_gevent, watch_trio, …

A thread asks the loop for a sign of life every few milliseconds. While none comes, it takes the stack of the loop's
thread again and again, and reads from the kernel how long that thread ran, and how long it was ready and had no CPU
(/proc/self/task/TID/schedstat): what is left of the time it was *blocked*, and whether other threads
of the process ran meanwhile (`others_s`). The asyncio log of slow callbacks, which
comes afterwards, names the callback alone and cannot tell the two apart.

`heart-<pid>.jsonl` in the folder gets a line for each time the loop was late (`stall`), and every half second one on
what was seen since (`seen`): among that where the tasks of asyncio wait, by the innermost await of the app's own, and
how often the process connected to whom. When the app's own code ends the process it gets one more (`ended`).
`gc-<pid>.jsonl` gets one for each collection of garbage that took a millisecond (`Collections`, which also works
without a heartbeat). Times are seconds of `time.monotonic`, which all processes of a machine share on Linux.
"""

from __future__ import annotations

import ast
import gc
import json
import linecache
import os
import sys
import threading
import traceback

# As they are before gevent replaces them: the heartbeat's thread must not be among the greenlets that it watches.
from _thread import allocate_lock, get_ident, start_new_thread
from collections import Counter, deque
from contextlib import suppress
from functools import lru_cache
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE
from random import Random
from time import monotonic, process_time, sleep, thread_time
from types import CodeType, FrameType
from typing import (
    IO,
    Any,
    Callable,
    Deque,
    Dict,
    Generator,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Set,
    Tuple,
    TypeVar,
)

from velodrome.guest.injected import building, gathering, hops, marks, pauses, sockets, statements
from velodrome.guest.injected.background import begun_by_app
from velodrome.guest.injected.places import Place, position

_own_random = Random()
"""Not the one of `random` that an app may have seeded."""
Key = TypeVar("Key")
Found = TypeVar("Found")
INTERVAL_S = 0.005
"""Between two heartbeats, and between two stacks of one stall."""
SEEN_S = 0.5
"""Between two lines on what was seen."""
SAMPLED_S = 0.02
"""Between two stacks of each thread, which show where time goes."""
HELD_S = 0.008
"""A sleep of an interval that takes so long ended in a wait for the interpreter's lock."""
EVERY_TASKS = 3
"""Every so manieth of the samples also looks where the tasks of the loop wait."""
MOST_HOLDERS = 8
"""Tasks of which each look also sees what they hold."""
HELD = ("Connection", "ConnectionProxy", "Cursor", "Session", "Transaction")
"""Endings of the names of classes of which what is held is one that others may wait for."""
DATABASES = {"aiomysql", "aiosqlite", "asyncmy", "asyncpg", "databases", "psycopg", "sqlalchemy", "sqlite3"}
MOST_TASKS = 64
"""Looked at, and places and peers reported of half a second, at most."""
MOST_TOLD = 20
MOST_NOTED = 200000
"""Between two reports. A heartbeat that cannot report must not fill the memory of the app."""
BEGINS_S = 0.1
"""Within which a thread that Python started has its first frame."""
AT_ONCE_S = 0.00001
"""Switch interval while such a stack is about to be taken. With the usual 5 ms a thread is met where it gives up the
interpreter's lock of its own accord, which is where it reads and writes, and never where it computes."""
BEFORE_S, BEFORE_AT_MOST_S = 0.0005, 0.005
"""For how long that is set, at random: this thread gets the lock where the loop has just answered it, or gives it up,
and a fixed time later it would meet the same part of each request. What keeps the lock for longer than the usual switch
interval gives it up anywhere."""
DEPTH = 30
"""Frames reported of a stack, the innermost first."""
TRIES = 3
"""Of stacks, until no thread has left its own before it is read; from the second on threads run as they usually do."""
SHORT_GC_S = 0.001
SOURCES = ("", ".py", ".pyw", ".pyx")
"""Endings of the files that Python's code is written in."""
LINE = 200
"""Characters reported of a line of source."""
AWAITS = CO_COROUTINE | CO_ASYNC_GENERATOR
"""Flags of the code of an `async def`, plain or a generator."""
IDLE = {"select", "poll", "run_forever", "run_until_complete", "_run_once", "_worker", "wait", "get", "run"}
IDLE |= {"get_events"}  # trio
"""Innermost functions of a thread that has nothing to do, as far as the standard library's loops and pools go.

Of the app's own functions that are called so it counts for how long they compute.
"""
EXECUTORS = ("asyncio_", "uvloop_", "ThreadPoolExecutor-")
"""Beginnings of the names of a default executor's threads: of asyncio, of uvloop from 0.23 on, and of uvloop before."""
POOLS = ("AnyIO worker thread", *EXECUTORS)
"""Beginnings of the names of threads that are counted."""
NATIVE = "not Python's"
"""Under which threads are counted that no Python code started, such as those of BLAS."""
LIBRARIES = (
    "aiohttp",
    "aiomysql",
    "anyio",
    "asgiref",
    "asyncio",
    "asyncpg",
    "django.db",
    "gevent",
    "grpc",
    "httpx",
    "logging",
    "numpy",
    "psycopg_pool",
    "redis",
    "requests",
    "sqlalchemy",
    "torch",
    "tornado.simple_httpclient",
    "uvloop",
)
NATIVE_LIMITS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
"""Variables that limit how many threads native libraries compute in."""


class Usage(NamedTuple):
    """Of one thread since it began, seconds."""

    at: float
    ran: float
    waited_for_cpu: float


SCHEDULE = "/proc/self/task/%d/schedstat"
"""What the kernel says of a thread, by its number."""


def usage_in(line: bytes) -> Usage:
    """Return what a thread used until now, as its schedule says. Raises ValueError."""
    ran, waited, _ = line.split()
    return Usage(monotonic(), int(ran) / 1e9, int(waited) / 1e9)


class Loop:
    """A loop that runs, and the thread that runs it."""

    def __init__(self, module: str, ask: Callable[[Callable[[], Any]], Any], own: Any = None) -> None:
        """`ask` has the loop call something, from any thread; it may raise RuntimeError where the loop is closed.

        `own` is the loop as asyncio knows it; None: it is none of asyncio's.
        """
        self.module, self.ask, self.own = module, ask, own
        self.ident = get_ident()
        native = getattr(threading, "get_native_id", None)  # Python 3.8
        self._schedule: Optional[int] = None
        if native is not None:
            with suppress(OSError):  # no Linux, or a kernel without it
                self._schedule = os.open(SCHEDULE % native(), os.O_RDONLY)

    def usage(self) -> Optional[Usage]:
        """Return what its thread used until now; None: this system does not say."""
        if self._schedule is None:
            return None
        try:
            return usage_in(os.pread(self._schedule, 100, 0))
        except (OSError, ValueError):  # the thread has ended
            return None

    def close(self) -> None:
        """Give back what it holds."""
        if self._schedule is not None:
            os.close(self._schedule)
            self._schedule = None


class HeldUp(NamedTuple):
    """Where a thread was while the loop was late, and for how long."""

    frames: Tuple[Dict[str, Any], ...]
    seconds: float
    ran_s: float
    blocked_s: float


class Call(NamedTuple):
    """Where code is called from that one of `marks.py` stands for."""

    name: str
    """Of the mark."""
    code: CodeType
    instruction: int


class Stack(NamedTuple):
    """What the stack of a thread shows at one moment."""

    ident: int
    stands: Tuple[int, int]
    """Its innermost frame, and where that is."""
    own: Optional[Call]
    """The innermost line of the app's own code; None: there is none on it."""
    idle: bool
    """Whether it is in a function in which threads wait."""
    rests: bool
    """Whether that is so, and the function is none of the app's own."""
    busy_with: Dict[str, Optional[Call]]
    """What it is in, and where from that is called."""


class Sent(NamedTuple):
    """A statement to a database, and where the app's own code sends it."""

    normalized: str
    """Without its values."""
    code: CodeType
    instruction: int


class Spent(NamedTuple):
    """In statements of one kind."""

    seconds: float
    times: int


class Timer(statements.Timer):
    """Tells a heartbeat for how long one statement ran."""

    __slots__ = ("_began", "_heart", "_sent")

    def __init__(self, heart: Heart, sent: Sent) -> None:
        self._heart, self._sent, self._began = heart, sent, 0.0

    def begin(self) -> None:
        """Run."""
        self._began = monotonic()

    def end(self) -> None:
        """Stop, and tell."""
        self._heart.spent_in(self._sent, monotonic() - self._began)


class Await(NamedTuple):
    """An await of the app's own code."""

    code: CodeType
    instruction: int
    inner: bool
    """Whether nothing of the app's own is inside of it."""
    locks: bool = False
    """Whether it is inner, and waits for a lock, which one has at a time."""


class Waits(NamedTuple):
    """Tasks that wait at one place."""

    seconds: float
    """Of all of them together."""
    most: int
    """At once."""


class Collections:
    """Writes a line for each collection of garbage that takes a millisecond, to `gc-<pid>.jsonl` in a folder."""

    def __init__(self, folder: str, is_own: Callable[[], bool] = lambda: False) -> None:
        """`is_own` says whether the thread that collects is velodrome's."""
        self._folder, self._is_own, self._began = folder, is_own, 0.0
        gc.callbacks.append(self._collected)

    def _collected(self, phase: str, info: Dict[str, int]) -> None:
        now = monotonic()
        if phase == "start":
            self._began = now
        elif now - self._began >= SHORT_GC_S and not self._is_own():
            pid = os.getpid()
            line = {"gc": now - self._began, "at": self._began, "generation": info["generation"], "pid": pid}
            # Not kept open: an app may close what it does not know, and have a connection by that number then.
            with suppress(OSError), open(os.path.join(self._folder, "gc-%d.jsonl" % pid), "a") as file:
                file.write(json.dumps(line) + "\n")


class Heart:
    """Watches the loop of a process: the one that was started last, which in servers is the one that serves.

    Of loops that a thread runs within one another it is the outermost.
    """

    def __init__(self, folder: str, late_s: float, warm: str = "") -> None:
        """`warm` is a file that is there once the app has answered its first requests."""
        self._folder, self._late_s, self._warm = folder, late_s, warm
        self._loop: Optional[Loop] = None
        self._file: Optional[IO[str]] = None
        self._ident, self._has_failed = 0, False
        self._samples: Dict[str, float] = {"all": 0.0}
        self._holds: Dict[Await, str] = {}
        self._calls: Dict[Call, float] = {}
        # Threads of the app append to these, and the heartbeat's own takes out: neither loses what the other does.
        self._statements: Deque[Tuple[Sent, Spent]] = deque(maxlen=MOST_NOTED)
        self._computing: Deque[Tuple[str, float]] = deque(maxlen=MOST_NOTED)
        self._connects: Deque[str] = deque(maxlen=MOST_NOTED)
        self._hops: Deque[Tuple[hops.Function, hops.Ran]] = deque(maxlen=MOST_NOTED)
        self._sampled = monotonic()
        self._first = get_ident()
        """The thread that began this process."""
        self._ran_s: Dict[int, float] = {}
        """CPU time of threads until it was last looked at."""
        self._is_warm = False
        self._stood: Dict[int, Tuple[int, int]] = {}
        """Where each thread stood when the app was warm: one that stands there still waits for no request."""
        self._threads: Dict[str, int] = {}
        self._late = 0.0
        self._waits: Dict[Await, Waits] = {}
        self._waiting: Dict[str, int] = {}
        self._samplings, self._tasks_seen = 0, monotonic()
        self._at_fork: List[str] = []
        self._left_behind: List[str] = []
        self._native = False
        self._lines = allocate_lock()
        # The heartbeat's own garbage is none of the app's.
        Collections(folder, lambda: get_ident() == self._ident)
        self._start()

    def watch(self, cls: Any, run: str = "run_forever", ask: str = "call_soon_threadsafe") -> None:
        """Have every loop of a class watched from when it runs; `run` and `ask` are the names of its methods."""
        before = getattr(cls, run)

        # `marks.LOOP` is its name.
        def watched(loop: Any, *args: Any, **named: Any) -> Any:
            mine = self._begin(Loop(type(loop).__module__, getattr(loop, ask), loop))
            try:
                return before(loop, *args, **named)
            finally:
                self._end(mine)

        setattr(cls, run, watched)

    def watch_gevent(self, cls: Any) -> None:
        """Have the hub of the main thread watched; `cls` is `gevent.hub.Hub`."""
        before = cls.run

        def run(hub: Any) -> Any:
            if not hub.loop.default:
                return before(hub)
            calls: List[Callable[[], Any]] = []
            # The one watcher that another thread may wake the loop with.
            watcher = hub.loop.async_(ref=False)

            def came() -> None:
                while calls:
                    calls.pop()()

            def ask(beat: Callable[[], Any]) -> None:
                calls.append(beat)
                watcher.send()

            watcher.start(came)
            mine = self._begin(Loop(type(hub).__module__, ask))
            try:
                return before(hub)
            finally:
                self._end(mine)
                watcher.stop()

        cls.run = run

    def watch_trio(self, module: Any) -> None:
        """Have every run of trio watched; `module` is `trio._core._run`."""
        before = module.unrolled_run

        def unrolled_run(runner: Any, *args: Any, **named: Any) -> Generator[Any, Any, Any]:
            mine = self._begin(Loop(module.__name__, runner.entry_queue.run_sync_soon))
            try:
                return (yield from before(runner, *args, **named))
            finally:
                self._end(mine)

        module.unrolled_run = unrolled_run

    def watch_tornado(self, module: Any) -> None:
        """Have the loops of Tornado before 5.0 watched, which are its own; `module` is `tornado.ioloop`."""
        own = getattr(module, "PollIOLoop", None)
        if own is not None:
            self.watch(own, "start", "add_callback")

    def watch_connects(self, module: Any) -> None:
        """Have connections that are opened counted; `module` is `socket`."""
        inet = (module.AF_INET, module.AF_INET6)

        def counted(name: str) -> None:
            before = getattr(module.socket, name)

            def connect(sock: Any, address: Any) -> Any:
                if sock.family in inet and sock.type == module.SOCK_STREAM:
                    self._connected(address[0], address[1])
                return before(sock, address)

            setattr(module.socket, name, connect)

        counted("connect")
        counted("connect_ex")

    def watch_connects_of(self, cls: Any) -> None:
        """Have those counted that a loop opens without Python's sockets; `cls` is `uvloop.Loop`."""
        before = cls.create_connection

        def create_connection(
            loop: Any, protocol: Any, host: Any = None, port: Any = None, **named: Any
        ) -> Any:
            if named.get("sock") is None and host is not None:
                self._connected(host, port)
            return before(loop, protocol, host, port, **named)

        cls.create_connection = create_connection

    def watch_builder(self, mark: str) -> building.Around:
        """Return what is called around each building of something, and adds up the CPU time it takes.

        Where several threads compute, most of them are met where they wait for the interpreter's lock: behind each call
        that gives it up, such as a statement to SQLite. Their stacks say little of what the CPU does.
        """

        def timed(function: Callable[..., Any], args: Any, named: Any) -> Any:
            began = thread_time()
            try:
                return function(*args, **named)
            finally:
                self._computing.append((mark, thread_time() - began))

        return timed

    def _connected(self, host: Any, port: Any) -> None:
        self._connects.append("%s:%s" % (host, port))

    def timer_of(self, normalized: str) -> Optional[statements.Timer]:
        """Return a timer for a statement that begins; None: no code of the app's own sends it."""
        frame = next(
            (outer for outer in _outwards(sys._getframe(1)) if is_own(outer.f_code.co_filename)), None
        )
        if frame is None:
            return None
        sent = Sent(normalized, frame.f_code, frame.f_lasti)
        self._statements.append((sent, Spent(0.0, 1)))
        return Timer(self, sent)

    def spent_in(self, sent: Sent, seconds: float) -> None:
        """Note that a statement ran for so long."""
        self._statements.append((sent, Spent(seconds, 0)))

    def ends(self, name: str, code: CodeType, instruction: int) -> bool:
        """Tell at once by what the app's own code is about to end this process, and let it."""
        with suppress(OSError):
            self._write({"ended": name, "at": monotonic(), **_source(code, instruction)})
        return False

    def hopped(self, function: hops.Function, seconds: float, cpu_s: float) -> None:
        """Note that a thread of AnyIO's was in a function of the app's own for so long, and computed for so long."""
        self._hops.append((function, hops.Ran(seconds, cpu_s, 1)))

    def _begin(self, loop: Loop) -> Loop:
        # One that a thread runs within another one (by a greenlet, for one call) holds up what that one serves.
        if self._loop is None or self._loop.ident != loop.ident:
            self._loop = loop
        return loop

    def _end(self, loop: Loop) -> None:
        if self._loop is loop:
            self._loop = None
        loop.close()

    def forks(self) -> None:
        """Note before a fork which threads it leaves behind: in the child nobody does their work."""
        self._at_fork = _threads_left_behind()
        self._native = self._native or _has_native_threads()
        if self._native:
            self._at_fork.append(NATIVE)

    def forked(self) -> None:
        """Begin anew in a process that was forked: threads stay behind."""
        self._file, self._loop, self._lines = None, None, allocate_lock()
        self._left_behind, self._native = self._at_fork, False
        self._first, self._ran_s, self._stood = get_ident(), {}, {}
        for noted in (self._statements, self._computing, self._connects, self._hops):
            noted.clear()  # by the parent, which reports it
        self._start()

    def _start(self) -> None:
        start_new_thread(self._beat, ())

    def _beat(self) -> None:
        self._ident = get_ident()
        reported = monotonic()
        while True:
            try:
                watched = self._loop
                if watched is not None:
                    self._listen(watched)
                self._sample_at_times()
                now = monotonic()
                if now - reported >= SEEN_S:
                    self._tell_seen(now - reported)
                    reported = now
                slept = monotonic()
                sleep(INTERVAL_S)
                if monotonic() - slept > HELD_S:
                    self._sample_at_times(held=True)
            except Exception:
                # One stack that cannot be read is no reason to see no other.
                self._say_what_failed()

    def _say_what_failed(self) -> None:
        """Print the first exception of the heartbeat's own to standard error."""
        if not self._has_failed:
            self._has_failed = True
            traceback.print_exc()
        sleep(INTERVAL_S)

    def _listen(self, watched: Loop) -> None:
        beat = allocate_lock()
        beat.acquire()
        before, used = watched.usage(), process_time()
        sent = monotonic()
        try:
            watched.ask(beat.release)
        except RuntimeError:  # it has been closed
            return
        if beat.acquire(timeout=self._late_s):
            return
        places: List[HeldUp] = []
        since, came = sent, False
        while not came and self._loop is watched:
            self._sample_at_times(held=True)
            frames = frames_of(sys._current_frames().get(watched.ident))
            came = beat.acquire(False)
            if came:  # the stack is of what came afterwards
                frames = places[-1].frames if places else ()
            else:
                came = beat.acquire(timeout=INTERVAL_S)
            now, after = monotonic(), watched.usage()
            ran = after.ran - before.ran if after and before else 0.0
            queued = after.waited_for_cpu - before.waited_for_cpu if after and before else 0.0
            blocked = max(0.0, now - since - ran - queued) if after and before else 0.0
            places.append(HeldUp(frames, now - since, ran, blocked))
            since, before = now, after
        length = monotonic() - sent
        self._late += length
        others = process_time() - used - sum(place.ran_s for place in places)
        line = {"stall": length, "at": sent, "others_s": max(0.0, others)}
        self._write({**line, "places": [place._asdict() for place in join_places(places)]})

    def _sample_at_times(self, held: bool = False) -> None:
        """Take the stacks if it is time; `held`: this thread has just waited for the interpreter's lock."""
        if monotonic() - self._sampled >= SAMPLED_S:
            self._sample(held)

    def _sample(self, held: bool) -> None:
        """Take a stack of each thread, but of those that are idle.

        It stands for the time since the last one, seconds: code in C that keeps the interpreter's lock is met once,
        when it ends. So a thread that waited for that must not let others run before it looks.
        """
        usual = sys.getswitchinterval()
        if not held:
            sys.setswitchinterval(AT_ONCE_S)
            sleep(_own_random.uniform(BEFORE_S, BEFORE_AT_MOST_S))
        for _ in range(TRIES):
            frames = sys._current_frames()
            sys.setswitchinterval(usual)
            stacks = [_stack(ident, frame) for ident, frame in frames.items() if ident != self._ident]
            # A thread that got the lock meanwhile is elsewhere, and a frame that it has left says where it returned.
            after = sys._current_frames()
            if all(_stands(after.get(stack.ident)) == stack.stands for stack in stacks):
                break
        now = monotonic()
        seconds, self._sampled = now - self._sampled, now
        if not self._stood and self._is_warm:
            self._stood = {stack.ident: stack.stands for stack in stacks}
        for stack in stacks:
            stands_still = stack.own is not None and self._stood.get(stack.ident) == stack.stands
            if not stack.rests and not stands_still:
                self._add_stack(stack, seconds)
        self._count_threads(len(frames))
        self._samplings += 1
        if not self._samplings % EVERY_TASKS:
            self._sample_tasks()
        self._is_warm = self._is_warm or os.path.exists(self._warm)

    def _add_stack(self, stack: Stack, seconds: float) -> None:
        spent = seconds
        waits = stack.idle or not (stack.busy_with or stack.own)
        background = begun_by_app(stack.ident, is_own)
        if waits or background or stack.ident in self._ran_s:  # of such a thread the clock is read each time
            computed = self._computed(stack.ident, seconds)
            spent = computed if waits else seconds
            if background:
                name = marks.BACKGROUND
                self._samples[name] = self._samples.get(name, 0.0) + computed
                self._saw_call(stack.own and stack.own._replace(name=name), computed)
        self._samples["all"] = self._samples.get("all", 0.0) + spent
        self._saw_call(stack.own, spent)
        for name, call in stack.busy_with.items():
            self._samples[name] = self._samples.get(name, 0.0) + spent
            self._saw_call(call, spent)

    def _count_threads(self, of_python: int) -> None:
        counts: Dict[str, int] = {NATIVE: max(0, _threads_of_kernel() - of_python)}
        # Not `enumerate`, whose lock gevent makes one that switches greenlets.
        for thread in list(getattr(threading, "_active", {}).values()):
            for pool in POOLS:
                if thread.name.startswith(pool):
                    counts[pool] = counts.get(pool, 0) + 1
        for pool, count in counts.items():
            self._threads[pool] = max(self._threads.get(pool, 0), count)

    def _computed(self, ident: int, seconds: float) -> float:
        """Return for how much of the last seconds a thread computed; where the system does not say, all of them.

        What a server's own code waits in is no work, and nothing else tells it from code in C: a loop of libuv's that
        polls, a master that looks after its workers.
        """
        thread = getattr(threading, "_active", {}).get(ident)
        # Its number of the first thread is wrong in a process that was forked (CPython up to 3.12).
        native = os.getpid() if ident == self._first else getattr(thread, "native_id", None)  # Python 3.8
        if native is None:
            return seconds
        try:
            with open(SCHEDULE % native, "rb") as file:
                ran_s = usage_in(file.read()).ran
        except (OSError, ValueError):  # no Linux, or the thread has ended
            return seconds
        before, self._ran_s[ident] = self._ran_s.get(ident), ran_s
        return seconds if before is None else min(ran_s - before, seconds)

    def _saw_call(self, call: Optional[Call], seconds: float) -> None:
        if call is not None:
            self._calls[call] = self._calls.get(call, 0.0) + seconds

    def _sample_tasks(self) -> None:
        """Look where the tasks of asyncio wait; what is seen stands for the time since the last look."""
        now = monotonic()
        seconds, self._tasks_seen = now - self._tasks_seen, now
        own = self._loop.own if self._loop is not None else None
        asyncio = sys.modules.get("asyncio")
        if own is None or asyncio is None:
            return
        try:
            tasks = list(asyncio.all_tasks(own))[:MOST_TASKS]
        except RuntimeError:  # they come and go
            return
        at_once: Dict[Await, int] = {}
        marked: Dict[str, int] = {}
        for number, task in enumerate(tasks):
            awaits, names, frames = waits_of(task)
            held = held_in(frames) if number < MOST_HOLDERS else ""
            if held:
                self._holds[awaits[-1]] = held
            for name in names:
                marked[name] = marked.get(name, 0) + 1
            for key in awaits:
                at_once[key] = at_once.get(key, 0) + 1
        for name, count in marked.items():
            self._waiting[name] = max(self._waiting.get(name, 0), count)
        for key, count in at_once.items():
            before = self._waits.get(key, Waits(0.0, 0))
            self._waits[key] = Waits(before.seconds + seconds * count, max(before.most, count))

    def _tell_seen(self, seconds: float) -> None:
        sending: Dict[Sent, Spent] = {}
        for sent, spent in _taken(self._statements):
            before = sending.get(sent, Spent(0.0, 0))
            sending[sent] = Spent(before.seconds + spent.seconds, before.times + spent.times)
        computing: Dict[str, float] = {}
        for mark, computed in _taken(self._computing):
            computing[mark] = computing.get(mark, 0.0) + computed
        hopping: Dict[hops.Function, hops.Ran] = {}
        for function, ran in _taken(self._hops):
            so_far = hopping.get(function, hops.Ran(0.0, 0.0, 0))
            hopping[function] = so_far.plus(ran)
        line = {
            "seen": seconds,
            "at": monotonic(),
            "loop": self._loop.module if self._loop is not None else None,
            "late_s": self._late,
            "samples": dict(self._samples),
            "computing": computing,
            "calls": [_calling(call, spent) for call, spent in _most(self._calls, float)],
            "threads": dict(self._threads),
            "libraries": [name for name in LIBRARIES if name in sys.modules],
            "limited": any(name in os.environ for name in NATIVE_LIMITS),
            "statements": _sent(sending, pauses_only=False),
            "pauses": _sent(sending, pauses_only=True),
            "hops": [_hopping(function, ran) for function, ran in _most(hopping, lambda ran: ran.seconds)],
            "waits": [
                {**awaiting(key, wait), "holds": self._holds.get(key, "")}
                for key, wait in _most(self._waits, lambda waits: waits.seconds)
            ],
            "waiting": self._waiting,
            "connects": dict(Counter(_taken(self._connects)).most_common(MOST_TOLD)),
            "ports": _count_of_ports(),
            "left_behind": self._left_behind,
        }
        self._late, self._samples, self._threads, self._calls = 0.0, {"all": 0.0}, {}, {}
        self._waits, self._waiting, self._holds = {}, {}, {}
        self._write(line)

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


def _stack(ident: int, frame: FrameType) -> Stack:
    """Return what the stack of a thread shows, given its innermost frame."""
    own, idle = marks.own_line(frame, is_own), frame.f_code.co_name in IDLE
    stands = _stands(frame)
    rests = idle and own is not frame
    busy_with = {
        name: _call(name, marks.called_from(name, outermost, is_own))
        for name, outermost in ({} if rests else marks.busy_with(frame)).items()
    }
    return Stack(ident, stands, _call(marks.OWN, own), idle, rests, busy_with)


def _stands(frame: Optional[FrameType]) -> Tuple[int, int]:
    return id(frame), frame.f_lasti if frame is not None else -1


def _call(name: str, caller: Optional[FrameType]) -> Optional[Call]:
    return Call(name, caller.f_code, caller.f_lasti) if caller is not None else None


def join_places(places: List[HeldUp]) -> List[HeldUp]:
    """Return places with those of one stack, one after the other, made one."""
    found: List[HeldUp] = []
    for place in places:
        if found and found[-1].frames == place.frames:
            last = found[-1]
            found[-1] = HeldUp(
                place.frames,
                last.seconds + place.seconds,
                last.ran_s + place.ran_s,
                last.blocked_s + place.blocked_s,
            )
        else:
            found.append(place)
    return found


def frames_of(frame: Optional[FrameType]) -> Tuple[Dict[str, Any], ...]:
    """Return a stack as plain data, the innermost frame first."""
    found: List[Dict[str, Any]] = []
    while frame is not None and len(found) < DEPTH:
        code = frame.f_code
        place = position(code, frame.f_lasti, frame.f_lineno)
        found.append(
            {
                "file": code.co_filename,
                "function": code.co_name,
                "own": is_own(code.co_filename),
                "awaits": bool(code.co_flags & AWAITS),
                "text": text_of(code.co_filename, place.line).rstrip(),
                **place._asdict(),
            }
        )
        frame = frame.f_back
    return tuple(found)


def text_of(file: str, line: int) -> str:
    """Return the beginning of a line of source; empty: it cannot be read."""
    with suppress(Exception):  # whatever the loader of a module raises
        return linecache.getline(file, line)[:LINE]
    return ""


def held_in(frames: List[FrameType]) -> str:
    """Return what the variables of frames hold of a database: `db (aiosqlite.core.Connection)`; empty: nothing."""
    for frame in reversed(frames):
        for name, value in list(frame.f_locals.items()):
            # What follows statements, and others, derive a class of their own.
            for cls in type(value).__mro__:
                if cls.__name__.endswith(HELD) and cls.__module__.partition(".")[0] in DATABASES:
                    return "%s (%s.%s)" % (name, cls.__module__, cls.__name__)
    return ""


def waits_of(task: Any) -> Tuple[List[Await], Set[str], List[FrameType]]:
    """Return the awaits of the app's own in which a task waits, the outermost first, and the marks of all of them.

    The frames are those of the awaits.
    """
    awaits: List[Await] = []
    names: Set[str] = set()
    frames: List[FrameType] = []
    locks = False
    get_coro = getattr(task, "get_coro", None)  # Python 3.8
    inner, depth = get_coro() if get_coro is not None else task._coro, 0
    while inner is not None and depth < DEPTH:
        frame = _first(inner, FRAMES)
        if frame is not None:
            code = frame.f_code
            names |= marks.waits_in(code.co_filename, code.co_name)
            locks = code.co_name == "acquire" and type(frame.f_locals.get("self")).__name__ == "Lock"
            if is_own(code.co_filename) and code.co_flags & AWAITS:
                awaits.append(Await(code, frame.f_lasti, False))
                frames.append(frame)
        inner = _first(inner, AWAITED)
        depth += 1
    if awaits:
        awaits[-1] = awaits[-1]._replace(inner=True, locks=locks)
    return awaits, names, frames


def _first(thing: Any, names: Tuple[str, ...]) -> Any:
    """Return the first of these attributes that is there and not None."""
    return next(
        (found for found in (getattr(thing, name, None) for name in names) if found is not None), None
    )


FRAMES, AWAITED = ("cr_frame", "gi_frame", "ag_frame"), ("cr_await", "gi_yieldfrom", "ag_await")
"""Of coroutines, generators and asynchronous generators: their frame, and what they wait for."""


def _taken(noted: Deque[Found]) -> List[Found]:
    """Take out what had been noted when this was called; threads may go on to append."""
    return [noted.popleft() for _ in range(len(noted))]


def _most(found: Dict[Key, Found], seconds: Callable[[Found], float]) -> List[Tuple[Key, Found]]:
    """Return those places in which most time was seen, at most MOST_TOLD."""
    return sorted(found.items(), key=lambda item: -seconds(item[1]))[:MOST_TOLD]


def _calling(call: Call, seconds: float) -> Dict[str, Any]:
    """Return where from a mark is called, as plain data."""
    return {"mark": call.name, "seconds": seconds, **_source(call.code, call.instruction)}


def _outwards(frame: Optional[FrameType]) -> Iterator[FrameType]:
    """Yield the frames of a stack, and those of what waits for its greenlet, as SQLAlchemy's coroutines do."""
    green = getattr(sys.modules.get("greenlet"), "getcurrent", lambda: None)()
    while frame is not None:
        yield frame
        frame = frame.f_back
        while frame is None and green is not None:
            green = green.parent
            frame = green.gr_frame if green is not None else None


def _sent(sending: Dict[Sent, Spent], pauses_only: bool) -> List[Dict[str, Any]]:
    """Return where from statements are sent, or where pauses are made, as plain data."""
    meant = {
        sent: spent for sent, spent in sending.items() if (sent.normalized == pauses.PAUSE) is pauses_only
    }
    return [
        {"statement": sent.normalized, **spent._asdict(), **_source(sent.code, sent.instruction)}
        for sent, spent in _most(meant, lambda spent: spent.seconds)
    ]


def _hopping(function: hops.Function, ran: hops.Ran) -> Dict[str, Any]:
    """Return a function that was called in threads, as plain data."""
    return {
        "seconds": ran.seconds,
        "cpu": ran.cpu_s,
        "times": ran.times,
        "file": function.file,
        "line": function.line,
        "function": function.name,
        "text": function.text,
        "yields": function.yields,
    }


def _source(code: CodeType, instruction: int) -> Dict[str, Any]:
    line = position(code, instruction).line
    text = text_of(code.co_filename, line).strip()
    return {"file": code.co_filename, "line": line, "function": code.co_name, "text": text}


def awaiting(key: Await, waits: Waits) -> Dict[str, Any]:
    """Return a place where tasks wait as plain data; with the run that could be gathered there, where it is in one."""
    found = _known.get(key)
    if found is None:
        file, place = key.code.co_filename, position(key.code, key.instruction)
        found = _known[key] = {
            "file": file,
            "function": key.code.co_name,
            "inner": key.inner,
            "locks": key.locks,
            "text": text_of(file, place.line).strip(),
            **place._asdict(),
            "run": run_of(file, place),
        }
    return {**found, **waits._asdict()}


_known: Dict[Await, Dict[str, Any]] = {}
_runs: Dict[str, List[gathering.Run]] = {}


def run_of(file: str, place: Place) -> Optional[Dict[str, Any]]:
    """Return the awaits that an await could run beside, as plain data; None: it cannot."""
    if file not in _runs:
        try:
            _runs[file] = gathering.runs(ast.parse("".join(linecache.getlines(file))))
        except (SyntaxError, ValueError, RecursionError):
            _runs[file] = []
    run = gathering.find(_runs[file], place)
    if run is None:
        return None
    return {
        "line": run.line,
        "end_line": run.end_line,
        "awaits": len(run.awaits),
        "loops": run.loops,
        "before": run.before[:LINE],
        "after": run.after[:LINE],
    }


def _count_of_ports() -> int:
    """Return how many ports there are for connections that the process opens; 0: this system does not say."""
    ports = sockets.local_ports()
    return ports[1] - ports[0] + 1 if ports else 0


@lru_cache(maxsize=None)
def is_own(file: str) -> bool:
    """Whether a file is the app's own, and not of the standard library, a package, or velodrome.

    A template that was compiled has code whose file is the template's, and lines that are not.
    """
    if os.path.splitext(file)[1] not in SOURCES:
        return False
    return not (marks.is_standard(file) or marks.is_installed(file) or marks.is_guest(file))


def _threads_left_behind() -> List[str]:
    """Return the names of this process's threads that a fork would leave behind, the main one's not among them."""
    main = threading.main_thread()
    # Not `enumerate`, whose lock gevent makes one that switches greenlets.
    every = list(getattr(threading, "_active", {}).values())
    return sorted(
        thread.name for thread in every if thread is not main and not thread.name.startswith("velodrome")
    )


def _has_native_threads() -> bool:
    """Say whether threads run here that no Python code started.

    A thread of Python's has no frame while it begins and while it ends, so that a single look would count it.
    """
    until = monotonic() + BEGINS_S
    while _threads_of_kernel() > len(sys._current_frames()):
        if monotonic() >= until:
            return True
        sleep(INTERVAL_S)
    return False


def _threads_of_kernel() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:  # no Linux
        return 0
