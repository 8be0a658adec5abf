"""What is left of values when all that is known of them is taken away, as a distribution that noise is drawn from."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

FEWEST = 24
"""Under this many, residuals say too little of the shape of their distribution, and normal ones are drawn."""


def shape(residuals: Iterable[NDArray[np.float64]]) -> tuple[float, ...]:
    """Return all of them, both signs, with variance 1; empty where they are too few to resample."""
    pool = np.concatenate([*residuals, np.zeros(0)])
    size = float(np.sqrt(np.mean(pool**2))) if pool.size else 0.0
    if pool.size < FEWEST or size < 1e-9:
        return ()
    pool = np.sort(np.round(pool / size, 3))
    return tuple(float(one) for one in np.concatenate([pool, -pool]))
