"""The distribution that noise is drawn from: of what is left of the values, where that is enough."""

import numpy as np
import pytest

from velodrome.judge import statistics
from velodrome.judge.statistics import FEWEST, shape


def test_too_few_residuals_have_no_shape() -> None:
    assert shape([np.array([0.1, -0.1])]) == ()
    assert shape([np.ones(FEWEST - 1)]) == ()
    assert shape([]) == ()
    assert shape([np.zeros(100)]) == ()


def test_a_shape_has_both_signs_of_all_and_the_variance_one() -> None:
    found = shape([np.linspace(1, 5, 20), np.full(4, 7.0)])
    assert len(found) == 2 * FEWEST
    assert sorted(found) == sorted(-residual for residual in found)
    assert np.var(found) == pytest.approx(1, rel=1e-3)


def test_a_fit_by_blocks_is_that_of_all_at_once() -> None:
    """The levels of the blocks are taken out first: the residuals of least squares with weights, in linear time."""
    draw = np.random.default_rng(5)
    cells = [(label, block) for label in range(5) for block in range(40) if draw.random() > 0.2]
    at_label, at_block = (np.array(column) for column in zip(*cells, strict=True))
    values, weights = draw.normal(size=len(cells)), np.array([1.0, 0.5, 0.1, 0.02, 1.0])
    left, df = statistics._fit(values, at_label, at_block, weights)
    design = np.zeros((len(cells), 45))
    design[np.arange(len(cells)), at_label] = 1
    design[np.arange(len(cells)), 5 + at_block] = 1
    root = np.sqrt(weights[at_label])
    fit, _, rank, _ = np.linalg.lstsq(design * root[:, None], values * root, rcond=None)
    assert df == len(cells) - rank
    np.testing.assert_allclose(left, values - design @ fit, atol=1e-9)
