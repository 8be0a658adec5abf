"""Nouns for the tests of run/, small and complete."""

from collections.abc import Mapping
from typing import Any

from velodrome.guest.recipe import Body, Cpu, Query, ReadBody, Recipe, Sleep
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
    WorkerUse,
)
from velodrome.model.results import Header
from velodrome.model.study import Question, Study
from velodrome.model.trial import Contestant, Trial

HELLO = Recipe("hello", "answers at once", (Body(84, on_wire=True),))
MIXED = Recipe(
    "mixed",
    "does a bit of everything",
    (ReadBody(), Query(), Sleep(1.5), Cpu(100), Body(10)),
    method="POST",
    upload_bytes=10,
)
CLOSED = Load(Closed(4), duration_s=0.3)
OPEN = Load(Open(50.0, "poisson", 10), duration_s=0.3)
PLACED = Placement((0,), (1,), (1,), False, "affinity and rlimits", ("told",))
LATENCY = Latency(1.0, 1.0, None, 2.0, 2.5, 3.25, 4.0, 5.0)
LOAD_FACTS = LoadFacts(
    requests=100,
    ok=99,
    duration_s=0.3,
    throughput_rps=330.0,
    outcomes={"ok": 99, "reset": 1},
    due=LATENCY,
    sent=LATENCY,
    lag=LATENCY,
    connections_asked=4,
    connections_opened=4,
    connections_reopened=1,
    connections_answered=4,
    mean_in_flight=3.9,
    generator_cpu_s=0.1,
    generator_cpu_user_s=0.05,
    generator_cpu_sys_s=0.05,
    generator_transport="epoll",
    generator_saturated=False,
    engine_flags=(),
    series=(LoadSecond(0.0, 100, 99, 1, 4, 1.0, 2.0, None),),
    hdr_due="",
    hdr_sent="",
    examples=("reset: <b>héllo</b>\n",),
)
SERVER_FACTS = ServerFacts(
    cpu_s=0.2,
    cpu_user_s=0.1,
    cpu_sys_s=0.1,
    rss_peak_bytes=1 << 20,
    pss_peak_bytes=None,
    threads_peak=1,
    fds_peak=5,
    switches_voluntary=None,
    switches_involuntary=3,
    workers=(WorkerUse(12, 0.2, 4),),
    samples=(ServerSample(0.1, 0.05, 1 << 20, 1, 1, 5, None),),
    boot_s=0.12,
)


LOAD_ROW: Mapping[str, float | None] = {
    "mean": 2.0,
    "p50": 1.0,
    "p75": 1.5,
    "p90": 2.0,
    "p95": 3.0,
    "p99": 4.0,
    "p99.9": None,
    "max": 5.0,
}
LOAD_DOCUMENT: dict[str, Any] = {
    "schema": "velodrome/load/1",
    "requests": 10,
    "ok": 9,
    "duration_s": 0.2,
    "throughput_rps": 45.0,
    "outcomes": {"ok": 9, "reset": 1},
    "latency_ms": {"due": LOAD_ROW, "sent": LOAD_ROW},
    "first_message_ms": None,
    "deliveries": None,
    "lag_ms": LOAD_ROW,
    "streams": {"asked": 1, "without_room": 0},
    "connections": {"asked": 4, "opened": 4, "reopened": 1, "answered": 4},
    "mean_in_flight": 3.9,
    "answered_before_read": 0,
    "generator": {
        "cpu_s": 0.03,
        "cpu_user_s": 0.01,
        "cpu_sys_s": 0.02,
        "transport": "epoll",
        "saturated": False,
        "threads": 1,
        "debug": False,
    },
    "flags": ["too-short"],
    "series": [
        {
            "at_s": 0.0,
            "requests": 10,
            "ok": 9,
            "errors": 1,
            "in_flight": 4,
            "p50_ms": 1.0,
            "p99_ms": 4.0,
            "max_ms": 5.0,
        }
    ],
    "hdr": {"due": "a", "sent": "b"},
    "load": {"model": "closed", "rate": None, "arrivals": "constant", "connections": 4, "at_once": None},
    "examples": [{"outcome": "reset", "text": "connection reset"}],
}
"""What the engine reports of a load."""


def trial(
    stack: str = "uvicorn",
    load: Load = CLOSED,
    block: int = 0,
    recipe: Recipe = HELLO,
    limits: Limits | None = None,
) -> Trial:
    return Trial(
        "study", recipe.name, recipe, Contestant(stack, {"workers": 2}), load, limits or Limits(), block
    )


def measurement(of: Trial) -> Measurement:
    flag = Flag(
        FlagKind.ERRORS, Severity.NOTE, "1 error", "look", {"errors": 1, "share": 0.01, "what": "reset"}
    )
    return Measurement(
        trial=of,
        started_at="2026-11-20T12:00:00+00:00",
        load=LOAD_FACTS,
        server=SERVER_FACTS,
        queue=QueueFacts(1, 2048, 0, None),
        host=HostFacts(0.0, None),
        placement=PLACED,
        flags=(flag,),
        command=("python", "-m", "uvicorn"),
        packages={"uvicorn": "1.0"},
        python="3.11.7",
    )


def failed(of: Trial, kind: FailureKind = FailureKind.START) -> Failed:
    return Failed(of, "2026-11-20T12:00:00+00:00", kind, "it did not start", ("ImportError: <x>",))


def study(seed: int = 1) -> Study:
    question = Question("mixed", MIXED, (CLOSED, OPEN))
    return Study(
        "study", "A study", (question,), (Contestant("uvicorn", {"workers": 2, "loop": "uvloop"}),), seed=seed
    )


def header(seed: int = 1, **machine: str | int | float | list[int] | None) -> Header:
    facts = {"cpu": "a CPU", "cpus": 2, "usable_cpus": [0, 1], "governor": None, **machine}
    return Header(study(seed), seed, facts, "0.1.0", "2026-11-20T12:00:00+00:00")
