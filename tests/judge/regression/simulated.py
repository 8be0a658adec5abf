"""Diffs of which the truth is known: blocks drawn with the noise that equal servers were seen to have, and worse."""

from dataclasses import dataclass, replace

import numpy as np

from velodrome.judge.before_after import DRIFT_OF_SPEED, OF_SPEED, Compared
from velodrome.judge.regression import Decided, Found, decide
from velodrome.judge.statistics import FIRST_LOOK, LOOKED_AT, Series, Two, next_look
from velodrome.model.difference import Change, Difference

NOISES = {
    ("throughput", "closed-40"): 0.037,
    ("cpu", "closed-40"): 0.05,
    ("memory", "closed-40"): 0.02,
    ("throughput", "open-100"): 0.01,
    ("p50", "open-100"): 0.05,
    ("p90", "open-100"): 0.2,
    ("p99", "open-100"): 0.3,
    ("cpu", "open-100"): 0.3,
}
"""What is presumed of the figures of one cell (docs/method.md, «Claims»)."""
SHARED = 0.7
"""Of a block's noise, so much is that of all figures of a cell: a pause is in its rate, its CPU and its latencies."""


@dataclass(frozen=True)
class Machine:
    """How a machine's noise is, beside what is presumed."""

    restless: float = 1.0
    """Times the presumed noise."""
    hiccups: float = 0.0
    """Share of blocks that something fell upon, for several times the noise."""
    drift: float = 0.0
    """Between two runs, as a share; 0: interleaved."""
    moods: float = 0.0
    """A start of a server is fast or slow, by such a share either way, whatever its noise."""


def diff(
    draw: np.random.Generator, machine: Machine, blocks: int, cells: int = 1, more: float = 0.0
) -> list[Decided]:
    """Return what became of the figures of some cells; all latencies and costs truly rose by `more`."""
    found = [seen for cell in range(cells) for seen in _cell(draw, machine, blocks, str(cell), more)]
    return decide(found, {})


def looked(draw: np.random.Generator, machine: Machine, most: int = 16, more: float = 0.0) -> list[Decided]:
    """Return what became of one cell that was looked at as a race of revisions is, until it was settled."""
    found = _cell(draw, machine, most, "0", more)
    blocks = FIRST_LOOK
    while True:
        decided = decide([_first(entry, blocks) for entry in found], {}, LOOKED_AT)
        open_ones = [decision for decision in decided if decision.difference.more_blocks]
        if not open_ones or blocks >= most:
            return decided
        blocks = next_look(blocks)


def _first(entry: Found, blocks: int) -> Found:
    assert isinstance(entry.figure, Compared)
    two = entry.figure.two
    sides = [
        replace(side, values={block: side.values[block] for block in range(blocks)})
        for side in (two.before, two.after)
    ]
    return replace(entry, figure=replace(entry.figure, two=Two(sides[0], sides[1], two.drift)))


def changes(decided: list[Decided]) -> list[Decided]:
    """Return those that were called a change."""
    return [
        decision
        for decision in decided
        if decision.difference.change in {Change.REGRESSION, Change.IMPROVEMENT}
    ]


def _cell(draw: np.random.Generator, machine: Machine, blocks: int, cell: str, more: float) -> list[Found]:
    shared = draw.normal(size=(2, blocks))
    shared += (draw.random((2, blocks)) < machine.hiccups) * np.abs(draw.normal(0, 4, (2, blocks)))
    moods = draw.choice([-machine.moods, machine.moods], (2, blocks))
    drift = draw.normal(0, machine.drift) if machine.drift else 0.0
    found = []
    for (metric, load), noise in NOISES.items():
        own = SHARED * shared + (1 - SHARED**2) ** 0.5 * draw.normal(size=(2, blocks))
        logs = own * noise * machine.restless / 2**0.5 + draw.normal(0, 0.1, (1, blocks))
        sign = -1 if metric == "throughput" else 1
        if metric in OF_SPEED:
            logs += moods
        if metric != "memory" and (metric, load) != ("throughput", "open-100"):
            logs[1] += sign * (np.log1p(more) + drift)
        sides = [Series(dict(enumerate(np.exp(side))), noise=noise) for side in logs]
        presumed = DRIFT_OF_SPEED if metric in OF_SPEED and noise < 0.1 else 1.0
        two = Two(sides[0], sides[1], presumed if machine.drift else 0.0)
        blank = Difference("made", cell, cell, load, metric, None, None, Change.INSUFFICIENT, 0.0)
        found.append(Found(blank, Compared(two, 1.0, 1.0)))
    return found
