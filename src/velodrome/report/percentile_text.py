"""A histogram as text, the form that HdrHistogram's plotters read.

           Value     Percentile TotalCount 1/(1-Percentile)

           0.308 0.500000000000      25000           2.00

Values are milliseconds. Five lines for each halving of what is left above
(AbstractHistogram.java, outputPercentileDistribution: https://github.com/HdrHistogram/HdrHistogram).
"""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

TICKS = 5
HEAD = f"{'Value':>12} {'Percentile':>14} {'TotalCount':>10} {'1/(1-Percentile)':>14}"


def lines(values_ms: Sequence[float], counts: Sequence[int], remark: str = "") -> list[str]:
    """Return the lines; `values_ms` rise, and of each there are as many as `counts` says."""
    found = [HEAD, ""]
    total = sum(counts)
    for value, share, below in _ticks(values_ms, counts):
        inverse = f" {1 / (1 - share):>14.2f}" if share < 1 else ""
        found.append(f"{value:>12.3f} {share:>14.12f} {below:>10}{inverse}")
    mean = sum(v * c for v, c in zip(values_ms, counts, strict=True)) / total if total else 0.0
    squares = sum(c * (v - mean) ** 2 for v, c in zip(values_ms, counts, strict=True))
    deviation = math.sqrt(squares / total) if total else 0.0
    longest = values_ms[-1] if values_ms else 0.0
    found.append(f"#[Mean    = {mean:>12.3f}, StdDeviation   = {deviation:>12.3f}]")
    found.append(f"#[Max     = {longest:>12.3f}, Total count    = {total:>12}]")
    return [*found, f"#[{remark}]"] if remark else found


def _ticks(values_ms: Sequence[float], counts: Sequence[int]) -> Iterator[tuple[float, float, int]]:
    """Yield (value, percentile as a share, values up to it), up to the largest, whose percentile is 1."""
    sums = list(accumulate(counts))
    if not sums:
        return
    total, share = sums[-1], 0.0
    while share < 1:
        place = bisect_left(sums, max(1.0, share * total - 1e-6))
        if sums[place] == total:
            break
        yield values_ms[place], share, sums[place]
        halvings = math.floor(math.log2(1 / (1 - share))) + 1
        share += 1 / (TICKS * 2**halvings)
    yield values_ms[-1], 1.0, total
