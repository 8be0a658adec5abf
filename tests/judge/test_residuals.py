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
    assert sorted(found) == sorted(-one for one in found)
    assert np.var(found) == pytest.approx(1, rel=1e-3)


def test_a_fit_of_many_blocks_is_that_of_few() -> None:
    """Beyond some blocks their levels are taken out first: the same residuals, in linear time."""
    draw = np.random.default_rng(5)
    cells = [(label, block) for label in range(5) for block in range(40) if draw.random() > 0.2]
    at_label, at_block = (np.array(one) for one in zip(*cells, strict=True))
    values = draw.normal(size=len(cells))
    (few, rank), (many, same) = (
        fit(values, at_label, at_block) for fit in (statistics._fit, statistics._fit_of_many)
    )
    assert rank == same == 44
    np.testing.assert_allclose(few, many, atol=1e-12)
