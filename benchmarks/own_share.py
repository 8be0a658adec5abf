"""How often the interval of an app's own share covers the truth, and a server that matters is judged not to.

    python benchmarks/own_share.py [worlds]

Each world has an app, an empty handler that costs a true share of it, and the noise of a machine between blocks. A line
for each level of noise and number of blocks: coverage of the interval, and how often a server of 7 % passed as one that
does not matter (the margin is 5 %).
"""

import math
import random
import sys

from velodrome.judge.own_share import MARGIN, share_of
from velodrome.judge.statistics import Sample
from velodrome.model.noise import SHIPPED, Spread

WORLDS = 2000
SHARES = (0.01, 0.03, 0.07, 0.3)
ABOVE = 0.07
LEVELS = (0.5, 1.0, 1.5, 2.0)
"""Noise as a multiple of the assumed."""
BLOCKS = (1, 2, 3, 8)


def world(draw: random.Random, share: float, noise: float, blocks: int, assumed: Spread) -> tuple[bool, bool]:
    """Return whether the interval covers the share, and whether the server passes as one that does not matter."""
    deviation = noise / math.sqrt(2)  # of the ratio
    app = {block: math.exp(draw.gauss(0, deviation)) for block in range(blocks)}
    part = {block: share * math.exp(draw.gauss(0, deviation)) for block in range(blocks)}
    whole, empty = (
        Sample(label, values, noise=assumed.share, noise_df=assumed.df)
        for label, values in (("app", app), ("server", part))
    )
    found = share_of(empty, whole)
    assert found is not None
    return found.low <= share <= found.high, found.high <= MARGIN


def main() -> None:
    """Print the tables."""
    worlds = int(sys.argv[1]) if len(sys.argv) > 1 else WORLDS
    for name, assumed in (
        ("CPU per request, busy", SHIPPED.cpu(1.0)),
        ("median of 0.3 ms at a low rate", SHIPPED.latency("p50", 0.3)),
    ):
        print(f"{name}: assumed {assumed.share:.1%}; {worlds} worlds a cell and share")
        print("noise   blocks  covered  7 % passes")
        for level in LEVELS:
            for blocks in BLOCKS:
                draw = random.Random(f"{name}/{level}/{blocks}")
                cells = {
                    share: [world(draw, share, level * assumed.share, blocks, assumed) for _ in range(worlds)]
                    for share in SHARES
                }
                every = [covered for found in cells.values() for covered, _ in found]
                passed = [passes for _, passes in cells[ABOVE]]
                covered = sum(every) / len(every)
                print(
                    f"{level * assumed.share:5.1%}  {blocks:6}  {covered:6.1%}  {sum(passed) / len(passed):9.1%}"
                )
        print()


if __name__ == "__main__":
    main()
