"""A hundred seeded cases of the judge's statistics give the numbers that are stored beside this file, to the last bit.

Stored results are judged again, years later: a refactoring must not move an interval. Where a method changes on
purpose, `python -m tests.judge.test_the_same_answers` stores the new numbers, and the changelog says so.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from velodrome.judge.statistics import (
    Comparison,
    Failing,
    Restlessness,
    Sample,
    Series,
    Two,
    estimate,
    holm,
    more_blocks,
    share,
)
from velodrome.model.quantity import Interval

STORED = Path(__file__).with_suffix(".json")


def _plain(found: Any) -> Any:
    if isinstance(found, Interval):
        return [found.low, found.mid, found.high]
    return found


def _count(sentence: str) -> int:
    """The number of blocks that a sentence begins with or says."""
    found = re.search(r"\d+", sentence)
    assert found is not None
    return int(found[0])


def field_of(seed: int) -> Any:
    """A race of two to eight contestants, some of them with blocks missing."""
    draw = np.random.default_rng(seed)
    blocks = int(draw.integers(1, 9))
    samples = []
    for number in range(int(draw.integers(2, 9))):
        level = 1000 * 1.05 ** int(draw.integers(0, 6))
        values = {
            block: float(level * draw.lognormal(0, 0.04))
            for block in range(blocks)
            if block == 0 or draw.random() > 0.1
        }
        samples.append(Sample(f"c{number}", values, float(draw.choice([0.0, 0.01]))))
    comparison = Comparison(samples)
    pair = comparison.pair("c0", "c1")
    assert pair is not None
    return {
        "ratio": _plain(pair.ratio),
        "spread": pair.spread,
        "alone": [_plain(comparison.alone(sample.label)) for sample in samples],
        "half": comparison.half_width(pair, 9),
        "more": [_count(more_blocks(comparison, pair, part, 10)) for part in (0.01, 0.03, 0.1)],
    }


def change_of(seed: int) -> Any:
    """Four figures of a diff, paired or of two stored runs."""
    draw = np.random.default_rng(1_000 + seed)
    blocks = int(draw.integers(2, 10))
    drift = float(draw.choice([0.0, 1.0, 2.0]))

    def side(by: float) -> Series:
        return Series({block: float(by * draw.lognormal(0, 0.05)) for block in range(blocks)}, 0.01, 0.037)

    figures = [Two(side(100), side(100 * (1 + 0.1 * number)), drift) for number in range(4)]
    machine = Restlessness.of(figures)
    found = [estimate(figure, machine) for figure in figures]
    chances = [difference.chance() for difference in found]
    return {
        "factor": machine.factor,
        "shown": [_plain(difference.shown) for difference in found],
        "chances": chances,
        "in all": holm(chances),
        "beyond": [difference.chance(0.05) for difference in found],
        "more": [[difference.more_blocks(part) for part in (0.02, 0.05, 0.2)] for difference in found],
    }


def failures_of(seed: int) -> Any:
    """Failed requests of both sides."""
    draw = np.random.default_rng(2_000 + seed)

    def side(part: float) -> list[tuple[int, int]]:
        return [(int(draw.binomial(1000, part)), 1000) for _ in range(int(draw.integers(2, 7)))]

    found = Failing(side(0.002), side(float(draw.choice([0.0, 0.002, 0.02]))))
    count = int(draw.integers(0, 50))
    of_share: Any = share(count, 400)
    return {"shown": _plain(found.shown), "chance": found.chance(), "share": _plain(of_share.interval)}


CASES: dict[str, Callable[[int], Any]] = {"field": field_of, "change": change_of, "failures": failures_of}
SEEDS = {"field": 50, "change": 25, "failures": 25}


@pytest.mark.parametrize("kind", CASES)
def test_the_numbers_are_the_stored_ones(kind: str) -> None:
    stored = json.loads(STORED.read_text())[kind]
    now = [json.loads(json.dumps(CASES[kind](seed))) for seed in range(SEEDS[kind])]
    assert [_rounded(case) for case in now] == [_rounded(case) for case in stored]


def _rounded(value: Any) -> Any:
    """To 12 digits: the order in which numbers are added up is nobody's promise, and `exp` differs by C library."""
    if isinstance(value, float):
        return float(f"{value:.12g}")
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return value


if __name__ == "__main__":
    answers = {kind: [make(seed) for seed in range(SEEDS[kind])] for kind, make in CASES.items()}
    STORED.write_text(json.dumps(answers, indent=None) + "\n")
