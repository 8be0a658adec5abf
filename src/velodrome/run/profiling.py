"""A profile: one contestant started once more, loaded, and sampled while the load is steady.

    profile = take(trial, lab, folder)         # never raises: a profile that cannot be had says why

Its load is of its own and nothing of it is ranked, because sampling stops the server for moments. py-spy takes the
samples (`record`): it reads the memory of the server and its workers, and stops them for a moment at each sample, which
needs the right to trace them (ptrace(2)): that of root, or of the same user where the kernel allows it."""

import json
import linecache
import os
import re
import shutil
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from velodrome.guest import catalog
from velodrome.guest.recipe import Recipe
from velodrome.model import profile
from velodrome.model.errors import DriverError, ProfilerError, StartRefusedError
from velodrome.model.load import Load
from velodrome.model.measurement import LoadFacts
from velodrome.model.profile import OPAQUE, WAITS, Profile, Stack, idle
from velodrome.model.trial import Session, Trial
from velodrome.run.drivers.driver import OWN, LoadEvent
from velodrome.run.drivers.foreign import Finished, Tool, spawn
from velodrome.run.faults import sentence
from velodrome.run.idle_clients import hold_idle
from velodrome.run.lab import Lab
from velodrome.run.link import enter
from velodrome.run.measuring.sampler import Sampled, Sampler
from velodrome.run.racing.plan import plan_session, seed_of
from velodrome.run.racing.session import Booted, ImpossibleError, boot
from velodrome.run.validity.lab import OTHER_REPORTED, most_lost

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


@cache
def _loops_in_c() -> tuple[str, ...]:
    return tuple(call for server in catalog.servers().values() for call in server.loops_in_c)


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
    return thread or bool(_LOOPS.search(leaf.line)) or any(call in leaf.line for call in _loops_in_c())


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
        short = [f"{_safe(function)} ({_safe(shorten_path(file))})" for function, file, _ in seen.frames]
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
        function, shorten_path(file), line_of(file, line), [shorten_path(frame[1]) for frame in seen.frames]
    )
    if waits(leaf, handler_waits):
        return WAITS
    return OPAQUE if in_c_loop(leaf) else ""


def shorten_path(file: str) -> str:
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
    frames = [{"name": frame, "file": profile.path_of(frame)} for frame in numbers]
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


OUTPUT = "stacks.raw"
RATE_HZ = 100
"""A sample stops the server for about a millisecond, so this takes a tenth of its time and no more."""
SLACK_S = 20.0
"""To start, to find out all about the interpreter, and to write."""
PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
TOOL = Tool("py-spy", "samples stacks", oldest="0.4", cure="Install it: python -m pip install py-spy")
_COUNTED = re.compile(r"Samples: (\d+) Errors: (\d+)")


@dataclass(frozen=True)
class Recording:
    """What was recorded."""

    text: str
    """As py-spy writes it."""
    version: str
    errors: int
    """Samples that could not be taken."""


def find_profiler() -> str:
    """Return where it is: beside this Python, else on PATH. Raises ProfilerError."""
    beside = Path(sysconfig.get_path("scripts")) / TOOL.name
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which(TOOL.name)
    if found is None:
        raise ProfilerError("it is not installed", TOOL.cure)
    return found


def record(
    pid: int,
    seconds: int,
    cpus: Sequence[int] = (),
    path: str = "",
    wanted: Callable[[], bool] = lambda: True,
) -> Recording:
    """Sample a process and all below it, as long as that is wanted. Raises ProfilerError."""
    path = path or find_profiler()
    version = TOOL.version_of(path)
    argv = [path, "record", "--pid", str(pid), "--subprocesses", "--threads", "--idle"]
    argv += [
        "--full-filenames",
        "--format",
        "raw",
        "--output",
        OUTPUT,
        "--rate",
        str(RATE_HZ),
        "--duration",
        str(seconds),
    ]
    try:
        finished = spawn(
            argv, cpus, span_s=seconds, slack_s=SLACK_S, on_event=lambda _: wanted(), measured=False
        )
    except (DriverError, StartRefusedError) as error:
        raise ProfilerError(str(error), "Profile a shorter load, or fewer processes") from error
    text = finished.files.get(OUTPUT, b"").decode(errors="replace")
    if finished.status != 0 or not text:
        raise _refusal(finished)
    counted = _COUNTED.search(finished.output + finished.errors)
    return Recording(text, f"py-spy {version}".strip(), int(counted[2]) if counted else 0)


def _refusal(finished: Finished) -> ProfilerError:
    """Return why nothing was recorded, with the cure."""
    output = finished.errors + finished.output
    if "Permission Denied" in output or "Operation not permitted" in output or "EPERM" in output:
        scope = PTRACE_SCOPE.read_text().strip() if PTRACE_SCOPE.exists() else ""
        why = f" (kernel.yama.ptrace_scope is {scope})" if scope not in ("", "0") else ""
        return ProfilerError(
            f"it is not permitted to trace the server{why}",
            "Run velodrome as root, in a container with --cap-add SYS_PTRACE, or set "
            "kernel.yama.ptrace_scope to 0",
        )
    if (
        "find python version" in output
        or "Unsupported version" in output
        or "unsupported python" in output.lower()
    ):
        return ProfilerError(
            "it cannot read this interpreter, or the server is no Python",
            "Run the stack on an interpreter that it knows (3.6 to 3.13), or install a newer py-spy",
        )
    first = next((line for line in output.splitlines() if line.startswith("Error")), "")
    last = finished.last_lines[-1] if finished.last_lines else ""
    what = first or last or f"it ended with status {finished.status} and printed nothing"
    return ProfilerError(
        what.removeprefix("Error: "), "Run py-spy record --pid on the server by hand to see more"
    )


FOLDER = "profiles"
LEAST_S = 2
"""Of sampling: two hundred samples, of which a share is known to three or four per cent."""
LEAST_WARMUP_S = 0.5
PATIENCE_S = 10.0
"""Of load beyond the sampling, for the profiler to begin and to end; the load ends when it has."""
MARGIN_S = 3.0
"""The same for a generator that cannot be ended early."""

BLOCKING = ("sync", "threads", "processes")
"""Kinds of concurrency in which a handler waits on its own stack."""


def take(trial: Trial, lab: Lab, folder: Path) -> Profile:
    """Profile one contestant under one load and write its stacks into `folder`."""
    none = Profile(trial, datetime.now(UTC).isoformat(timespec="milliseconds"), rate_hz=RATE_HZ)
    try:
        return _take(none, lab, folder)
    except ImpossibleError as why:
        return replace(none, failed=why.reason)
    except Exception as error:  # this machine refuses something, or it is a bug: of this profile alone
        return replace(none, failed=sentence(error))


def _take(none: Profile, lab: Lab, folder: Path) -> Profile:
    trial, path = none.trial, find_profiler()
    with ExitStack() as running:
        booted = boot(plan_session(Session((trial,)), lab), lab, running)
        facts, sampler, recording = _record(trial, booted, lab, path)
        booted.server.stop(lab.stop_seconds)
    sampled = sampler.result(booted.boot_s)
    taken = replace(
        none,
        profiler=recording.version,
        seconds=float(_seconds(trial.load)),
        errors=recording.errors,
        python=booted.environment.version,
        achieved_rps=facts.throughput_rps,
        server_cpu_s=sampled.server.cpu_s,
        load_s=sampled.span_s,
        notes=tuple(_notes(sampled)),
    )
    try:
        return _store(taken, recording, folder, blocking=booted.server.serving.stack.concurrency in BLOCKING)
    except ValueError as error:
        return replace(none, failed=f"what {recording.version} wrote cannot be read: {error}")
    except OSError as error:
        return replace(none, failed=f"its stacks cannot be written into {folder}: {error.strerror}")


def _notes(sampled: Sampled) -> Iterator[str]:
    others, whose = most_lost(sampled, os.cpu_count() or 1, lambda lost: lost.other_cpu_s)
    if others >= OTHER_REPORTED:
        yield (
            f"Other programs used {others * 100:.0f} % of {whose} while it was taken: a server that "
            "waits for a CPU looks busy, so it idles more than this tells."
        )


def _seconds(load: Load) -> int:
    return max(LEAST_S, round(load.duration_s))


def _load(load: Load) -> Load:
    """Return the load a profile is taken under: by time, and longer than the sampling."""
    longer_s = PATIENCE_S if load.driver == OWN else MARGIN_S
    warmup_s = max(load.warmup_s, LEAST_WARMUP_S)
    return replace(load, requests=None, duration_s=_seconds(load) + longer_s, warmup_s=warmup_s)


class _Spy:
    """Starts the profiler when the measured span of the load begins; leaving the `with` block ends it."""

    def __init__(self, booted: Booted, sampler: Sampler, seconds: int, path: str) -> None:
        self.booted, self.sampler, self.seconds, self.path = booted, sampler, seconds, path
        self.pool = ThreadPoolExecutor(1, "profiler")
        self.recording: Future[Recording] | None = None
        self.in_time = False
        self.wanted = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wanted = False
        self.pool.shutdown(wait=True)

    def on(self, event: LoadEvent) -> bool:
        self.sampler.on(event)
        if event.kind == "measuring":
            pid, cpus = self.booted.server.pid, self.booted.placed.load_cpus
            self.recording = self.pool.submit(record, pid, self.seconds, cpus, self.path, lambda: self.wanted)
        over = self.recording is not None and self.recording.done()
        if event.kind == "span_ended":
            self.in_time = over
        alive = self.booted.server.exit() is None
        return alive and not (over and event.kind == "tick")

    def result(self) -> Recording:
        """Wait for what was recorded. Raises ProfilerError."""
        if self.recording is None:
            raise ProfilerError("the load ended before it was steady", "Look at the server's log")
        recording = self.recording.result()
        if not self.in_time:
            raise ProfilerError(
                "it was still sampling when the load had ended, and saw a server without work",
                "Give the profile's load a longer duration, or the machine some rest",
            )
        return recording


def _record(trial: Trial, booted: Booted, lab: Lab, path: str) -> tuple[LoadFacts, Sampler, Recording]:
    load, site, placed = _load(trial.load), booted.site, booted.placed
    driver = lab.driver(load.driver, placed, seed_of(trial))
    sampler = Sampler(
        booted.server.pid,
        booted.server.serving.port,
        load.duration_s,
        booted.bounds.account,
        inside=site.server,
    )
    target = booted.target
    with _Spy(booted, sampler, _seconds(trial.load), path) as spy:
        with (
            enter(site.client),
            hold_idle(load.idle, target.url, placed.load_cpus, target.allow, server=site.server),
            sampler,
        ):
            facts = driver.run(load, target, spy.on)
        return facts, sampler, spy.result()


def _store(taken: Profile, recording: Recording, folder: Path, blocking: bool) -> Profile:
    """Write the stacks down and return the profile with what they tell. Raises ValueError for no stacks."""
    ticks = round(taken.seconds * taken.rate_hz)
    stacks = stacks_of(recording.text, linecache.getline, blocking and _waits(taken.trial.recipe), ticks)
    shape = profile.shape(stacks)
    name = re.sub(r"[^A-Za-z0-9]+", "-", f"{taken.trial.cell}-{taken.trial.load.label}").strip("-")
    (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    collapsed, scoped = f"{FOLDER}/{name}.collapsed.txt", f"{FOLDER}/{name}.speedscope.json"
    (folder / collapsed).write_text(profile.dump(stacks), encoding="utf-8")
    (folder / scoped).write_text(
        speedscope_document(stacks, taken.trial.cell, taken.rate_hz), encoding="utf-8"
    )
    return replace(
        taken,
        samples=shape.samples,
        idle_share=shape.idle_share,
        opaque_share=shape.opaque_share,
        depth_mean=shape.depth_mean,
        depth_max=shape.depth_max,
        share_by_package=shape.by_package,
        share_by_part=shape.by_part,
        share_by_function=shape.by_function,
        collapsed=collapsed,
        speedscope=scoped,
    )


def _waits(recipe: Recipe) -> bool:
    """Whether a handler that is innermost on a stack is likelier to wait than to compute.

    Its source is woven in the server and unknown here. On an event loop a handler that waits is on no stack.
    """
    return recipe.wait_ms > recipe.cpu_us / 1000
