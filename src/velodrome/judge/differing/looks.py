"""A race that goes on until its answer is settled looks at it several times, and each look could err.

It looks after 4 blocks, and again each time there are twice as many. A change is called one where its chance stays
under the level divided by the number of looks (Bonferroni's inequality; with so few looks little is lost to closer
ones, such as Pocock, «Group Sequential Methods in the Design and Analysis of Clinical Trials», Biometrika 64, 1977).
"""

FIRST = 4
MOST = 64


def next_look(blocks: int) -> int:
    """Return after how many blocks a race is looked at that has so many."""
    at = FIRST
    while at <= blocks:
        at *= 2
    return min(at, MOST)


def looks(blocks: int) -> int:
    """Return how often a race that ended with so many blocks was looked at, that last time included."""
    at, count = FIRST, 1
    while at < blocks:
        at, count = at * 2, count + 1
    return count
