"""The opinion on the made-up race, as a judge would write it: a winner, a tie and a «cannot tell»."""

import math
from dataclasses import replace

from tests.report.made_up import (
    BLOCKS,
    HELLO,
    LARGE,
    QUESTIONS,
    RUNNERS,
    SKIPPED,
    SPAN_S,
    STUDY,
    THIRD_PARTY,
    Runner,
    capacity,
    failed,
    flags_of,
    latency,
    shape,
)

from velodrome.model.load import Load
from velodrome.model.measurement import Severity
from velodrome.model.quantity import Interval
from velodrome.model.study import Question
from velodrome.model.verdict import Answer, LatencyView, Outcome, Standing, Verdict

PERCENTILES = (50.0, 60.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9, 99.95, 99.99)


def curve(base_ms: float, tail: float) -> tuple[tuple[float, float], ...]:
    return tuple((p, base_ms * 10 ** (tail * -math.log10(1 - p / 100) / 4)) for p in PERCENTILES)


def interval(mid: float, share: float) -> Interval:
    return Interval(mid * (1 - share), mid, mid * (1 + share))


def view(runner: Runner, question: Question, load: Load) -> LatencyView:
    rps, due_ms, tail, sent_ms = shape(runner, question, load)
    at = latency(due_ms, tail)
    requests = round(rps * SPAN_S * BLOCKS)
    due, sent = curve(due_ms, tail), curve(sent_ms, min(tail, 1.1))
    return LatencyView(load.label, at.p50, at.p90, at.p99, at.p99_9, at.max, rps, 0, requests, due, sent)


def standing(runner: Runner, question: Question, rank: int, best: float) -> Standing:
    label = runner.contestant.label
    if (runner.stack, question.name) in SKIPPED:
        reason = failed(runner, question, question.loads[0], 0).reason
        return Standing(
            label, runner.stack, runner.title, None, None, None, None, (), 0, 0, None, None, "", (), reason
        )
    rps = capacity(runner, question)
    set_aside = runner.stack == "socketserver" and question.name == "third-party"
    slots = runner.slots if question.name == "third-party" else None
    ceiling = slots / 0.2 if slots else None
    notes = tuple(
        dict.fromkeys(
            f.sentence for b in range(BLOCKS) for f in flags_of(runner, question, question.loads[0], b)
        )
    )
    valid = sum(
        all(f.severity is Severity.NOTE for f in flags_of(runner, question, question.loads[0], b))
        for b in range(BLOCKS)
    )
    cpu_us = 1e6 / runner.rps if question.name != "large" else 1e6 / capacity(runner, question)
    return Standing(
        label,
        runner.stack,
        runner.title,
        None if set_aside else rank,
        None if set_aside else interval(rps, 0.011),
        None if set_aside else interval(cpu_us, 0.02),
        round(runner.memory_mb * 1e6),
        tuple(view(runner, question, load) for load in question.loads),
        BLOCKS,
        valid,
        None if set_aside else interval(rps / best, 0.015),
        ceiling,
        f"{slots} ÷ 0.2 s = {ceiling:g}/s" if ceiling else "",
        notes,
        "",
        f"python -m {runner.stack.split('-')[0]} --workers 2 --bind 0.0.0.0:8000 app:app",
    )


def standings(question: Question) -> tuple[Standing, ...]:
    """Return the contestants ranked; those within 2 % of the one before share its rank."""
    best = max(capacity(r, question) for r in RUNNERS)
    order = sorted(RUNNERS, key=lambda r: -capacity(r, question))
    found, rank, previous = [], 0, math.inf
    for place, runner in enumerate(order, 1):
        rps = capacity(runner, question)
        rank = rank if rps > previous * 0.98 else place
        previous = rps
        found.append(standing(runner, question, rank, best))
    ranks = [row.rank for row in found]
    placed = [
        replace(row, rank_low=row.rank, rank_high=row.rank + ranks.count(row.rank) - 1) if row.rank else row
        for row in found
    ]
    return tuple(sorted(placed, key=lambda s: (s.rank is None, s.rank or 0)))


def answers() -> tuple[Answer, ...]:
    hello, third, large = (standings(question) for question in QUESTIONS)
    tied = (
        "aiohttp-uvloop",
        "uvicorn-uvloop",
        "gunicorn-gevent[workers=2]",
        "asyncio-uvloop",
        "granian-rsgi",
        "tornado",
    )
    return (
        Answer(
            "hello",
            HELLO.about,
            Outcome.WINNER,
            ("granian-rsgi",),
            "For an endpoint that answers at once, 84 bytes: granian · rsgi, 41 200/s, "
            "1.12× [1.09, 1.14] asyncio streams · uvloop.",
            (
                "It spends 24 µs of CPU on a request, the least of all.",
                "Block 1 was set aside: the generator was its limit.",
            ),
            hello[0].deploy,
            hello,
        ),
        Answer(
            "third-party",
            THIRD_PARTY.about,
            Outcome.TIE,
            tied,
            "Six stacks reach 197/s and cannot be told apart.",
            (
                "Any stack that lets a worker wait on many requests reaches 40 ÷ 0.203 s = 197/s.",
                "Sync workers stop at workers ÷ 0.2 s: 2 ÷ 0.2 s = 10/s.",
                "aiohttp · uvloop does it with 68 µs of CPU a request.",
            ),
            next(s.deploy for s in third if s.contestant == "aiohttp-uvloop"),
            third,
            "18 more blocks (9 min) would settle a difference of 1 %.",
        ),
        Answer(
            "large",
            LARGE.about,
            Outcome.CANNOT_TELL,
            ("granian-rsgi", "asyncio-uvloop"),
            "Cannot tell granian · rsgi from asyncio streams · uvloop: difference 1 % [−3, +5].",
            ("Moving 220 kB takes most of the time, whoever does it.",),
            large[0].deploy,
            large,
            "6 more blocks (2 min) would settle 3 %.",
        ),
    )


def verdict() -> Verdict:
    """Return the opinion on the made-up race."""
    return Verdict(
        STUDY.name,
        STUDY.title,
        STUDY.seed,
        answers(),
        (
            "socketserver, third-party: the listen queue overflowed 37 times (12 of 40 never got in).",
            "granian-rsgi, hello, block 1: the generator used 99 % of its CPU.",
            "waitress, hello: did not start within 10 s (exit 1).",
            "tornado, large: answered wrongly before any load.",
        ),
        ("Server on CPU 0, load and third party on CPU 1.",),
        {"machine": "made-up processor at 2.5 GHz, 2 CPUs", "kernel": "Linux 6.18", "python": "3.11.7"},
        "settled after 3 blocks",
    )
