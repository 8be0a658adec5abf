"""What chance does by simulation agrees with what is known of it by mathematics."""

import numpy as np
import pytest
from scipy import stats

from velodrome.judge.statistics import Design, by_chance, critical_of_difference, shape


@pytest.mark.parametrize("blocks", [1, 3, 8, 20])
def test_paired_blocks_with_normal_noise_need_students_t(blocks: int) -> None:
    design = Design(blocks, blocks)
    df = 4 + blocks - 1
    assert critical_of_difference(0.05, design) == pytest.approx(stats.t.ppf(0.975, df), rel=0.03)
    assert by_chance(3.0, design) == pytest.approx(2 * stats.t.sf(3.0, df), rel=0.15)


def test_blocks_alone_without_presumed_noise_need_students_t_of_their_own() -> None:
    assert critical_of_difference(0.05, Design(5, 5, prior_df=0)) == pytest.approx(
        stats.t.ppf(0.975, 4), rel=0.03
    )


def test_no_number_of_blocks_takes_the_drift_between_two_runs_out() -> None:
    # the drift alone, of which little is known: t of four degrees of freedom
    assert critical_of_difference(0.05, Design(50, 50, drift=1.0)) == pytest.approx(
        stats.t.ppf(0.975, 4), rel=0.05
    )


def test_noise_with_long_tails_makes_chance_likelier_never_less_likely() -> None:
    rare = np.concatenate([np.full(46, 0.1), [6.0, -6.0]])
    tails = shape([rare])
    assert len(tails) == 96
    design = Design(3, 3)
    assert by_chance(2.0, design, tails) >= by_chance(2.0, design)
    assert critical_of_difference(0.05, design, tails) >= critical_of_difference(0.05, design)


def test_the_least_chance_is_not_none() -> None:
    assert 0 < by_chance(1e9, Design(3, 3)) < 1e-4
