"""Many figures are looked at in one diff: by chance alone one of twenty looks like a change.

Sture Holm, «A Simple Sequentially Rejective Multiple Test Procedure», Scandinavian Journal of Statistics 6, 1979:
whatever the figures have to do with each other (those of one cell have much), the chance that any of them is called a
change where nothing changed stays under the level.
"""

from collections.abc import Sequence


def holm(chances: Sequence[float]) -> list[float]:
    """Return each chance as it is among all of them: compared with the level, it keeps that level for the family."""
    order = sorted(range(len(chances)), key=lambda index: chances[index])
    found = [0.0] * len(chances)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, chances[index] * (len(chances) - rank)))
        found[index] = largest
    return found
