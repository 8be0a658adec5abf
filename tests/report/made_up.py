"""A whole race, made up: 3 questions, 10 contestants, 3 blocks; flags, failures, stalls and hostile text.

Figures are drawn from a fixed seed, so every report made of them is the same each time.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from velodrome.guest.recipe import Body, Call, Recipe
from velodrome.guest.stacks.uvicorn import stack as uvicorn
from velodrome.model.load import Closed, Limits, Load, Open
from velodrome.model.measurement import (
    Failed,
    FailureKind,
    Flag,
    FlagKind,
    HostFacts,
    Latency,
    LoadFacts,
    LoadSecond,
    Measurement,
    Placement,
    QueueFacts,
    ServerFacts,
    ServerSample,
    Severity,
    UpstreamFacts,
    WorkerUse,
)
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant, Trial

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=alert(1)>\x1b[31m\u202e </script> =cmd"
SPAN_S = 5
BLOCKS = 3


@dataclass(frozen=True)
class Runner:
    """What one made-up stack can do: requests per second and CPU of `hello`, memory, requests at once."""

    stack: str
    title: str
    rps: float
    memory_mb: float
    slots: int | None = None
    knobs: Mapping[str, int] = field(default_factory=dict)

    @property
    def contestant(self) -> Contestant:
        return Contestant(self.stack, dict(self.knobs))

    @property
    def called(self) -> str:
        return self.contestant.called(replace(uvicorn, name=self.stack, title=self.title))


RUNNERS = (
    Runner("granian-rsgi", "granian · rsgi", 41_200, 31),
    Runner("asyncio-uvloop", "asyncio streams · uvloop", 36_900, 24),
    Runner("uvicorn-uvloop", "uvicorn · uvloop", 19_800, 48),
    Runner("aiohttp-uvloop", "aiohttp · uvloop", 14_700, 38),
    Runner("gunicorn-gevent", "gunicorn · gevent", 5_900, 66, None, {"workers": 2}),
    Runner("gunicorn-gthread", "gunicorn · gthread", 5_200, 61, 16, {"workers": 2, "threads": 8}),
    Runner("gunicorn-sync", "gunicorn · sync", 3_900, 58, 2, {"workers": 2}),
    Runner("tornado", "Tornado", 3_700, 34),
    Runner("socketserver", "socketserver", 4_300, 14.2, 1),
    Runner("waitress", "waitress", 3_800, 29, 8),
)
HELLO = Recipe("hello", "answers at once, 84 bytes", (Body(84, True),))
THIRD_PARTY = Recipe("third-party-200ms", "waits 200 ms on a third party", (Call(200), Body(84)))
LARGE = Recipe("large", "answers 220 kB", (Body(220_000),))


def loads(connections: int, rate: float) -> tuple[Load, ...]:
    return Load(Closed(connections), SPAN_S, 1.0), Load(Open(rate), SPAN_S, 1.0)


QUESTIONS = (
    Question("hello", HELLO, loads(40, 2_000)),
    Question("third-party", THIRD_PARTY, loads(40, 100)),
    Question("large", LARGE, loads(40, 500)),
)
STUDY = Study(
    "first-lap",
    "Which server suits which endpoint?",
    QUESTIONS,
    tuple(runner.contestant for runner in RUNNERS),
    blocks=BLOCKS,
    budget_s=300,
    limits=Limits(cpus=1),
    sources=("Three endpoints that published comparisons disagree about.",),
)
CALLED = {runner.contestant.label: runner.called for runner in RUNNERS}
PLACEMENT = Placement((0,), (1,), (1,), False, "affinity and rlimits", ("no cgroup is writable here",))
MACHINE: Mapping[str, str | int | float | list[int] | None] = {
    "cpu": "made-up processor at 2.5 GHz",
    "cpus": 2,
    "kernel": "Linux 6.18",
    "memory_bytes": 8_000_000_000,
}
HEADER: Mapping[str, Any] = {
    "schema": "velodrome/results/1",
    "seed": 4711,
    "machine": MACHINE,
    "velodrome": "0.1.0",
}
SKIPPED = ("waitress", "hello"), ("tornado", "large")


def capacity(runner: Runner, question: Question) -> float:
    """Return how many requests per second this runner can answer in closed loop."""
    if question.name == "third-party":
        in_flight = min(40, runner.slots or 40)
        return min(in_flight / 0.2026, runner.rps / 4)
    if question.name == "large":
        return 1 / (1 / runner.rps + 1 / 4_400)
    return runner.rps


def latency(base_ms: float, tail: float) -> Latency:
    """Return percentiles that rise from `base_ms` by `tail` decades to the far end."""
    at = [base_ms * 10 ** (tail * -math.log10(1 - p / 100) / 4) for p in (50, 75, 90, 95, 99, 99.9, 99.99)]
    return Latency(base_ms * 1.01, *at)


def shape(runner: Runner, question: Question, load: Load) -> tuple[float, float, float, float]:
    """Return achieved requests/s, and from due and from sent the base of latency and its tail in decades."""
    most = capacity(runner, question)
    wait_ms = 200.0 if question.name == "third-party" else 0.0
    own_ms = 1e3 / runner.rps * 2 + (1.2 if question.name == "large" else 0.05)
    if isinstance(load.pace, Closed):
        width = 40 / most * 1e3
        return most, width, 0.35, width
    if load.pace.rate <= most:
        return (
            load.pace.rate,
            wait_ms + own_ms,
            0.06 if wait_ms else 0.9 + 4_000 / runner.rps,
            wait_ms + own_ms,
        )
    return most, SPAN_S * 500 * (1 - most / load.pace.rate), 0.3, wait_ms + own_ms


def flags_of(runner: Runner, question: Question, load: Load, block: int) -> tuple[Flag, ...]:
    """Return what went wrong: an overflowing queue, a lagging generator, a noted imbalance."""
    if runner.stack == "socketserver" and question.name == "third-party":
        return (
            Flag(
                FlagKind.LISTEN_QUEUE_OVERFLOWED,
                Severity.INVALID,
                "the listen queue overflowed 37 times; 12 of 40 clients never got in",
                "raise the backlog (--backlog) or add workers",
                {"overflows": 37, "never_in": 12},
            ),
        )
    if (
        runner.stack == "granian-rsgi"
        and question.name == "hello"
        and block == 1
        and isinstance(load.pace, Closed)
    ):
        return (
            Flag(
                FlagKind.GENERATOR_SATURATED,
                Severity.INVALID,
                "the generator used 99 % of its CPU: this is its limit, not the server's",
                "give the load another CPU, or load from another machine",
                {"cpu_share": 0.99},
            ),
        )
    if runner.stack == "gunicorn-gevent" and block == 2:
        sentence = "one of 2 workers did 71 % of the work"
        return (
            Flag(
                FlagKind.UNEQUAL_WORKERS,
                Severity.NOTE,
                sentence,
                "use --reuse-port or one worker per CPU",
                {},
            ),
        )
    if runner.stack == "uvicorn-uvloop" and question.name == "large" and block == 0:
        return (
            Flag(
                FlagKind.ERRORS, Severity.NOTE, f"3 answers were wrong: {HOSTILE}", "look at the answers", {}
            ),
        )
    return ()


def load_facts(runner: Runner, trial: Trial, question: Question, chance: random.Random) -> LoadFacts:
    rps, due_ms, tail, sent_ms = shape(runner, question, trial.load)
    rps *= chance.gauss(1, 0.006)
    requests = round(rps * SPAN_S)
    hostile = runner.stack == "uvicorn-uvloop" and question.name == "large"
    errors = 3 if hostile else 0
    stalled = runner.stack == "tornado" and question.name == "hello"
    series = tuple(second(at, rps, due_ms, stalled and at == 2, chance) for at in range(SPAN_S))
    return LoadFacts(
        requests,
        requests - errors,
        float(SPAN_S),
        rps,
        {"ok": requests - errors, "wrong_body": errors},
        latency(due_ms, tail),
        latency(sent_ms, min(tail, 1.1)),
        latency(0.012, 1.2),
        40,
        28 if runner.stack == "socketserver" else 40,
        0,
        28 if runner.stack == "socketserver" else 40,
        rps * sent_ms * 1.02 / 1e3,
        0.21 * SPAN_S,
        0.05 * SPAN_S,
        0.16 * SPAN_S,
        "io_uring",
        False,
        (),
        series,
        "",
        "",
        (HOSTILE,) if hostile else (),
    )


def second(at: int, rps: float, due_ms: float, stalled: bool, chance: random.Random) -> LoadSecond:
    ok = 0 if stalled else round(rps * chance.gauss(1, 0.02))
    p99 = 900.0 if stalled else due_ms * chance.uniform(1.4, 1.9)
    return LoadSecond(float(at), ok, ok, 0, 40, None if stalled else due_ms, p99, p99 * 1.3)


def server_facts(runner: Runner, rps: float, question: Question, chance: random.Random) -> ServerFacts:
    share = min(0.99, rps / (runner.rps if question.name != "large" else capacity(runner, question)) * 0.98)
    cpu_s = share * SPAN_S
    rss = round(runner.memory_mb * 1e6)
    workers = runner.knobs.get("workers", 1)
    shares = (0.71, 0.29) if runner.stack == "gunicorn-gevent" else (1 / workers,) * workers
    samples = tuple(
        ServerSample(
            at / 2,
            cpu_s * at / 2 / SPAN_S,
            round(rss * (0.9 + 0.01 * at)),
            1,
            workers,
            50,
            chance.randrange(3),
        )
        for at in range(SPAN_S * 2 + 1)
    )
    use = tuple(WorkerUse(4_000 + i, cpu_s * part, round(40 * part)) for i, part in enumerate(shares))
    return ServerFacts(
        cpu_s, cpu_s * 0.6, cpu_s * 0.4, rss, rss - 2_000_000, 3, 60, 900, 40, use, samples, 0.42
    )


def measurement(runner: Runner, question: Question, load: Load, block: int) -> Measurement:
    trial = Trial(STUDY.name, question.name, question.recipe, runner.contestant, load, STUDY.limits, block)
    chance = random.Random(trial.key)
    facts = load_facts(runner, trial, question, chance)
    third_party = UpstreamFacts(facts.requests, 0.05, 0.03, 0.11) if question.recipe.calls_upstream else None
    full = runner.stack == "socketserver" and question.name == "third-party"
    return Measurement(
        trial,
        f"2026-11-20T12:{block * 20 + 3:02d}:00Z",
        facts,
        server_facts(runner, facts.throughput_rps, question, chance),
        QueueFacts(129 if full else 3, 128 if full else 2048, 37 if full else 0, 37 if full else 0),
        HostFacts(0.01, 0.04),
        PLACEMENT,
        flags_of(runner, question, load, block),
        third_party,
        ("python", "-m", runner.stack.split("-")[0], "--bind", "127.0.0.1:8000", "app:app"),
        {runner.stack.split("-")[0]: "1.2.3", "uvloop": "0.22.1"},
        "3.11.7",
    )


def failed(runner: Runner, question: Question, load: Load, block: int) -> Failed:
    trial = Trial(STUDY.name, question.name, question.recipe, runner.contestant, load, STUDY.limits, block)
    if runner.stack == "tornado":
        reason = "answered wrongly before any load: 220 000 bytes expected, 65 536 came."
        return Failed(trial, "2026-11-20T12:00:00Z", FailureKind.WRONG_ANSWER, reason, (HOSTILE,))
    lines = ("Traceback (most recent call last):", "ModuleNotFoundError: No module named 'shop'", HOSTILE)
    reason = "waitress did not start within 10 s (exit 1). Cure: --cwd is /srv/app; pass --cwd or PYTHONPATH."
    return Failed(trial, "2026-11-20T12:00:00Z", FailureKind.START, reason, lines)


def results() -> list[Measurement | Failed]:
    """Return every result of the race, as they would be read from disk."""
    found: list[Measurement | Failed] = []
    for block in range(BLOCKS):
        for question in QUESTIONS:
            for runner in RUNNERS:
                for load in question.loads:
                    made = failed if (runner.stack, question.name) in SKIPPED else measurement
                    found.append(made(runner, question, load, block))
    return found
