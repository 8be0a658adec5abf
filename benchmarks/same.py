"""How often `velodrome diff` finds a change where there is none, and how often one that is there: of 100 diffs each.

Races same.toml, about four minutes, or takes the folder of a run of it that there is; then draws blocks from it,
7 a side and of each block a coin for which of the equal servers stands before: python benchmarks/same.py [RUN_DIR]
"""

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from racing import results

from velodrome.guest.catalog import stacks
from velodrome.judge.before_after import Pairing, Sides
from velodrome.judge.field import Runner, runners
from velodrome.judge.metrics import Cell
from velodrome.judge.regression import diff
from velodrome.model.difference import Change, Diff, Side
from velodrome.model.measurement import Measurement
from velodrome.model.results import Results

STUDY = Path(__file__).with_suffix(".toml")
TIMES = 100
BLOCKS = 7
BLOCKS_APART = 4
CHANGED = {Change.REGRESSION, Change.IMPROVEMENT}


def cells(run: Results) -> dict[str, Cell]:
    """Return the only contestant of every question."""
    known = stacks()
    return {
        question.name: Cell(question, runner)
        for question in run.header.study.questions
        for runner in runners(question, run.trials, known)
    }


def of_blocks(cell: Cell, measured: Sequence[Measurement]) -> Cell:
    """Return a cell with just these measurements, numbered anew in their order."""
    blocks = dict.fromkeys(measurement.trial.block for measurement in measured)
    number = {block: index for index, block in enumerate(blocks)}
    again = tuple(
        replace(measurement, trial=replace(measurement.trial, block=number[measurement.trial.block]))
        for measurement in measured
    )
    return Cell(cell.question, replace(cell.runner, measured=again, failed=()))


def by_block(runner: Runner) -> dict[int, list[Measurement]]:
    """Return the measurements of each block."""
    found: dict[int, list[Measurement]] = {}
    for measurement in runner.measured:
        found.setdefault(measurement.trial.block, []).append(measurement)
    return found


def compared(before: Cell, after: Cell, paired: bool) -> Diff:
    """Return the diff of two cells."""
    pairings = tuple(Pairing("work", before, after, load) for load in before.question.loads)
    return diff(Sides(Side("before"), Side("after"), paired, pairings, (), ()))


def interleaved(before: Cell, other: Cell, draw: Random, swap: bool) -> Diff:
    """Return the diff of blocks drawn from both, each with its neighbour of the same block."""
    mine, theirs = by_block(before.runner), by_block(other.runner)
    drawn = draw.sample(sorted(mine.keys() & theirs.keys()), BLOCKS)
    pairs = [(mine[block], theirs[block]) for block in drawn]
    if swap:
        pairs = [pair if draw.random() < 0.5 else pair[::-1] for pair in pairs]
    sides = [
        of_blocks(
            cell,
            [
                replace(measurement, trial=replace(measurement.trial, block=number))
                for number, pair in enumerate(pairs)
                for measurement in pair[side]
            ],
        )
        for side, cell in enumerate((before, other))
    ]
    return compared(sides[0], sides[1], paired=True)


def apart(cell: Cell, draw: Random) -> Diff:
    """Return the diff of blocks of the first half of the race and of the second, as of two runs one after the other."""
    blocks = by_block(cell.runner)
    order = sorted(blocks)
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    drawn = [sorted(draw.sample(half, BLOCKS_APART)) for half in halves]
    parts = [[measurement for block in part for measurement in blocks[block]] for part in drawn]
    return compared(of_blocks(cell, parts[0]), of_blocks(cell, parts[1]), paired=False)


def counted(diffs: Iterator[Diff]) -> tuple[int, Mapping[str, int]]:
    """Return in how many diffs anything was called a change, and in how many each figure was called a regression.

    Raises ValueError where most of them could tell nothing at all: that these found nothing would prove nothing.
    """
    found, by_figure, decided = 0, Counter[str](), 0
    for outcome in diffs:
        decided += any(
            difference.interval is not None and min(difference.blocks) > 3
            for difference in outcome.differences
        )
        found += any(difference.change in CHANGED for difference in outcome.differences)
        by_figure.update(
            f"{difference.metric} under {difference.load}"
            for difference in outcome.differences
            if difference.change is Change.REGRESSION
        )
    if decided < TIMES * 0.9:
        raise ValueError(f"only {decided} of {TIMES} diffs had four valid blocks: run it on a calmer machine")
    return found, by_figure


def main() -> int:
    """Print the counts; 1 if a change is found between equals more often than in 5 of 100."""
    field = cells(results(STUDY, sys.argv[1:]))
    draw = Random(4711)
    same, _ = counted(interleaved(field["work"], field["again"], draw, swap=True) for _ in range(TIMES))
    drift, _ = counted(apart(field["work"], draw) for _ in range(TIMES))
    found, by_figure = counted(
        interleaved(field["work"], field["more"], draw, swap=False) for _ in range(TIMES)
    )
    print(f"of {TIMES} diffs of {BLOCKS} blocks drawn from this run:")
    print(f"  equal servers, interleaved:       {same:3} find a change")
    print(f"  equal servers, one after another: {drift:3} find a change")
    print(f"  a tenth more work, interleaved:   {found:3} find a change")
    for figure, count in sorted(by_figure.items(), key=lambda item: -item[1]):
        print(f"    {figure:28} {count:3}")
    return 1 if max(same, drift) > TIMES * 0.05 else 0


if __name__ == "__main__":
    sys.exit(main())
