"""Printed intervals hold the truth as often as they say: a small seeded part of `benchmarks/intervals.py`."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from velodrome.judge.statistics import order_statistics

pytestmark = pytest.mark.simulation

FILE = Path(__file__).parents[2] / "benchmarks/intervals.py"


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("intervals", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["intervals"] = module
    spec.loader.exec_module(module)
    return module


intervals = _loaded()
WORLDS = 200
LEAST = 0.95 - 3 * (0.95 * 0.05 / WORLDS) ** 0.5
"""Three standard errors of a share of so many worlds."""


@pytest.mark.parametrize("kind", ["alone", "pair", "claim-p99", "percentile"])
@pytest.mark.parametrize("level", [0.5, 4.0])
def test_on_a_machine_that_is_known_intervals_hold_the_truth_at_any_level_of_noise(
    kind: str, level: float
) -> None:
    for blocks in (1, 3):
        assert intervals.coverage(kind, intervals.World(level, blocks, known=True), WORLDS) >= LEAST


@pytest.mark.parametrize("kind", ["cost", "waits", "order"])
def test_on_an_unknown_machine_as_noisy_as_presumed_they_do_too(kind: str) -> None:
    for blocks in (1, 8):
        assert intervals.coverage(kind, intervals.World(1.0, blocks), WORLDS) >= LEAST - 0.02


def test_a_diff_shows_intervals_that_hold_the_truth() -> None:
    assert intervals.coverage("diff", intervals.World(1.0, 4), 60) >= 0.95 - 3 * (0.95 * 0.05 / 60) ** 0.5


def test_of_equals_hardly_any_field_has_a_winner() -> None:
    assert intervals.false_winners(intervals.World(1.0, 3, known=True), 5, WORLDS) <= 0.05
    assert intervals.false_winners(intervals.World(2.0, 1, known=True), 2, WORLDS) <= 0.10


def test_five_looks_at_a_diff_err_together_as_often_as_one_would() -> None:
    assert intervals.false_changes(1.0, 300) <= 0.05 + 2 * 0.0126
    # At its full level each, they err more often.
    assert intervals.false_changes(1.0, 300, "none") > intervals.false_changes(1.0, 300)


@pytest.mark.parametrize(("count", "share"), [(300, 0.99), (1000, 0.99), (20, 0.5), (100, 0.9)])
def test_the_ranks_of_a_quantile_hold_it_in_at_least_95_of_100(count: int, share: float) -> None:
    low, high = order_statistics(count, share)
    values = np.sort(np.random.default_rng(4).random((4000, count)), axis=1)
    above = values[:, low - 1] <= share
    below = values[:, high - 1] >= share if high <= count else np.ones(4000, bool)
    assert (above & below).mean() >= 0.94


def test_a_race_that_is_run_until_it_is_settled_seldom_errs_and_settles_what_differs() -> None:
    world = intervals.World(1.0, 3, known=True)
    draw = np.random.default_rng(7)
    equals = [intervals.settle(world, draw, [0.0, 0.0]) for _ in range(WORLDS)]
    assert sum(len(first) < 2 for first in equals) / WORLDS <= 1 - LEAST
    far = [intervals.settle(world, draw, [0.0, -0.5, -0.5]) for _ in range(20)]
    assert sum(first == ("0",) for first in far) >= 16
