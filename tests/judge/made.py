"""Made-up results of exactly the shape a test needs: one call, one trial."""

import base64
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from velodrome.guest.recipe import Body, Call, Cpu, Recipe
from velodrome.guest.stack import KnobValue, Launch, Process, Stack, one_per_worker, unbounded
from velodrome.judge.statistics import Pair
from velodrome.judge.verdict import judge
from velodrome.model.load import Closed, Limits, Load, Open
from velodrome.model.measurement import (
    Failed,
    FailureKind,
    Flag,
    FlagKind,
    HostFacts,
    Latency,
    LoadFacts,
    Measurement,
    Placement,
    QueueFacts,
    ServerFacts,
    Severity,
)
from velodrome.model.results import Header, Machine, Result, Results
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant, Trial
from velodrome.model.verdict import Answer, Verdict

HELLO = Recipe("hello", "answers at once, 84 bytes", (Body(84, on_wire=True),))
THIRD_PARTY = Recipe("third-party-200ms", "waits 200 ms on a third party", (Call(200), Body(84)))
CPU = Recipe("cpu-2ms", "computes for 2 ms", (Cpu(2000), Body(84)))
CLOSED = Load(Closed(40), 2.0, 0.3)
OPEN = Load(Open(100), 2.0, 0.3)
HELLO_Q = Question("hello", HELLO, (CLOSED, OPEN))
THIRD_Q = Question("third-party", THIRD_PARTY, (CLOSED, OPEN))
MACHINE: Machine = {
    "cpu": "made up",
    "cpus": 2,
    "kernel": "6.18",
    "memory_bytes": 8 * 10**9,
    "system": "Linux",
}
NO_LATENCY = Latency(None, None, None, None, None, None, None, None)
INVALID = Flag(
    FlagKind.GENERATOR_SATURATED, Severity.INVALID, "The generator used 99 % of its CPU.", "Use -t 2."
)
STOLEN = Flag(
    FlagKind.CPU_STEAL, Severity.INVALID, "The host took 9 % of the CPUs.", "Measure on a quieter machine."
)
SPOILT_ITSELF = Flag(FlagKind.ERRORS, Severity.INVALID, "3 % of the requests failed.", "Look why.")
NOTE = Flag(FlagKind.UNEQUAL_WORKERS, Severity.NOTE, "One worker did 91 % of the work.", "Look why.")
SHORT = Flag(FlagKind.TOO_SHORT, Severity.NOTE, "Too few requests for p99.", "Run longer.")


def _command(launch: Launch) -> Process:
    return Process(("-m", "server", f"--bind={launch.host}:{launch.port}", launch.app))


def stack(
    name: str, title: str = "", workers: int | None = None, cannot: Mapping[str, str] | None = None
) -> Stack:
    """A stack with a slot for each worker, or without limit."""
    return Stack(
        name,
        title or name,
        "made up",
        "wsgi",
        "sync" if workers else "tasks",
        _command,
        knobs={"workers": workers or 1},
        slots=one_per_worker if workers else unbounded,
        cannot=cannot or {},
    )


STACKS = {
    entry.name: entry
    for entry in (
        stack("uvicorn", "uvicorn · uvloop"),
        stack("granian", "granian · rsgi"),
        stack("gevent", "gunicorn · gevent"),
        stack("sync", "gunicorn · sync", workers=2),
        stack("picky", cannot={"call": "it calls nobody"}),
    )
}


def encode(values_ns: Iterable[int], digits: int = 3) -> str:
    """A compressed V2 histogram, lowest value 1, as an HdrHistogram library writes it."""
    half_magnitude = (2 * 10**digits - 1).bit_length() - 1
    counts: dict[int, int] = {}
    for value in values_ns:
        bucket = max(0, value.bit_length() - half_magnitude - 1)
        index = ((bucket + 1) << half_magnitude) + (value >> bucket) - (1 << half_magnitude)
        counts[index] = counts.get(index, 0) + 1
    payload, at = b"", 0
    for index, count in sorted(counts.items()):
        payload += (_leb128(-(index - at)) if index > at else b"") + _leb128(count)
        at = index + 1
    inner = struct.pack(">iiiiqqd", 0x1C849313, len(payload), 0, digits, 1, 1 << 40, 1.0) + payload
    squeezed = zlib.compress(inner)
    return base64.b64encode(struct.pack(">ii", 0x1C849314, len(squeezed)) + squeezed).decode()


def _leb128(number: int) -> bytes:
    left, text = (number << 1) ^ (number >> 63), b""
    left &= (1 << 64) - 1
    while left > 0x7F and len(text) < 8:
        text += bytes([left & 0x7F | 0x80])
        left >>= 7
    return text + bytes([left])


def trial(
    name: str,
    question: Question = HELLO_Q,
    block: int = 0,
    load: Load = CLOSED,
    knobs: Mapping[str, KnobValue] | None = None,
    python: str = "",
) -> Trial:
    contestant = Contestant(name, knobs or {})
    return Trial("made", question.name, question.recipe, contestant, load, Limits(cpus=1), block, python)


def measured(
    of: Trial,
    rps: float,
    cpu_us: float = 500,
    memory_mb: int = 40,
    flags: Sequence[Flag] = (),
    latencies_ms: Sequence[float] = (),
    mean_ms: float | None = None,
    command: tuple[str, ...] = (
        "/env/bin/python",
        "-m",
        "server",
        "--bind=127.0.0.1:40123",
        "velodrome.guest.interfaces.wsgi:app",
    ),
    in_flight: float | None = 40.0,
) -> Measurement:
    """A measurement; `rps` right answers a second over the span of the trial's load."""
    ok = round(rps * of.load.duration_s)
    latency = Latency(mean_ms, *[None] * 7)
    hdr = encode([round(value * 1e6) for value in latencies_ms]) if latencies_ms else ""
    facts = LoadFacts(
        ok, ok, of.load.duration_s, rps, {"ok": ok}, latency, latency, NO_LATENCY, 40, 40, 0, 40, in_flight,
        0.1, 0.02, 0.08, "epoll", False, (), (), hdr, hdr,
    )  # fmt: skip
    memory = memory_mb * 10**6
    server = ServerFacts(cpu_us * ok / 1e6, 0, 0, memory, memory, 1, None, None, None, (), (), 0.5)
    placement = Placement((0,), (1,), (1,), False, "affinity and rlimits")
    at = f"2026-11-20T12:{of.block:02d}:{sum(map(ord, of.key)) % 60:02d}+00:00"
    none = QueueFacts(None, None, None, None)
    return Measurement(
        of,
        at,
        facts,
        server,
        none,
        HostFacts(None, None),
        placement,
        tuple(flags),
        None,
        command,
        {},
        "3.11.7",
    )


def failed(
    of: Trial, reason: str = "it did not start within 10 s (exit 1)", kind: FailureKind = FailureKind.START
) -> Failed:
    return Failed(of, "2026-11-20T12:00:00+00:00", kind, reason, ("Traceback",))


def steady(
    name: str, rates: Sequence[float], question: Question = HELLO_Q, **facts: Any
) -> list[Measurement]:
    """One measurement a block, in the closed loop."""
    return [measured(trial(name, question, block), rps, **facts) for block, rps in enumerate(rates)]


def results(
    trials: Sequence[Measurement | Failed],
    questions: Sequence[Question] = (HELLO_Q,),
    contestants: Sequence[Contestant] | None = None,
    blocks: int = 3,
    machine: Machine = MACHINE,
) -> Results:
    """A whole file. The study has the contestants that appear, unless given."""
    seen = contestants or list(
        {result.trial.contestant.label: result.trial.contestant for result in trials}.values()
    )
    study = Study("made", "Made up", tuple(questions), tuple(seen), blocks, limits=Limits(cpus=1))
    return Results(
        Header(study, 4711, machine, "0.1.0", "2026-11-20T12:00:00+00:00"), tuple(trials), 0, False
    )


def verdict(trials: list[Result], *questions: Question, blocks: int = 3) -> Verdict:
    return judge([results(trials, questions or (HELLO_Q,), blocks=blocks)], STACKS)


def answer(trials: list[Result], *questions: Question) -> Answer:
    (found,) = verdict(trials, *questions).answers
    return found


FAST = steady("granian", [4000, 4100, 3950], cpu_us=25)


SLOW = steady("uvicorn", [2000, 2100, 2010], cpu_us=48)


def settled(pair: Pair) -> bool:
    """Whether the interval leaves out equality."""
    return pair.ratio.low > 1 or pair.ratio.high < 1
