"""Every estimate, interval and test of the judge, as pure functions on numbers.

    Comparison(samples).pair("granian", "uvicorn").ratio     a race: intervals that hold for all contestants at once
    estimate(Two(before, after), machine).chance()           a diff: how often chance alone looks like this
    holm(chances)                                            many figures looked at together
    more_blocks(comparison, pair, share)                     how long until it is settled

In reading order: how sure an interval is and what noise looks like; the comparison of a field of contestants; a number
of one cell block by block (what claims and diffs compare); how many more blocks it takes; the tests of a diff; shares
of requests that failed.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import pairwise
from math import log
from statistics import median
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from velodrome.model.measurement import Failed, Measurement
from velodrome.model.noise import DF, SHARES
from velodrome.model.quantity import Interval, duration

Key = TypeVar("Key")

CONFIDENCE = 0.95
_LARGEST_END = 300 * math.log(10)
"""The logarithm of the largest number at which an interval ends."""
NORMAL = 1.959963984540054
"""Standard errors of a normal value, two-sided, with that confidence."""


def _special() -> Any:
    """Return the special functions of scipy: half a second to import, and most commands end before they need any.

    `scipy.stats` takes a second, and calls these.
    """
    from scipy import special  # noqa: PLC0415

    return special


def student_t(freedom: float, confidence: float = CONFIDENCE) -> float:
    """Return how many standard errors wide half an interval is: Student's t, two-sided."""
    return float(_special().stdtrit(freedom, (1 + confidence) / 2))


def beyond_t(t: float, freedom: float) -> float:
    """Return how often Student's t is at least so far from 0, on either side."""
    return float(2 * _special().stdtr(freedom, -abs(t)))


def median_of_chi2(freedom: float) -> float:
    """Return the median of the chi-squared distribution, by which a median of variances is made unbiased."""
    return float(2 * _special().gammaincinv(freedom / 2, 0.5))


def largest_ratio(freedom: float, other: float) -> float:
    """Return what the ratio of two estimates of one variance stays under (F distribution)."""
    return float(_special().fdtri(freedom, other, CONFIDENCE))


def beyond_f(ratio: float, freedom: float, other: float) -> float:
    """Return how often the ratio of two estimates of one variance is at least so large (F distribution)."""
    return float(_special().fdtrc(freedom, other, ratio))


def wilson(count: int, of: int) -> tuple[float, float]:
    """Return the interval of a share by Wilson's score (E. B. Wilson, JASA 22, 1927): right near 0 and 1 too.

    As Newcombe writes it (Statistics in Medicine 17, 1998, pages 857 to 872). `of` is above 0.
    """
    part = count / of
    z = NORMAL
    scale = 2 * (of + z**2)
    center = (2 * of * part + z**2) / scale
    half = z / scale * math.sqrt(4 * of * part * (1 - part) + z**2)
    return 0.0 if count == 0 else center - half, 1.0 if count == of else center + half


def more_by_chance(count: int, of: int, other: int, other_of: int) -> float:
    """Return how often chance alone puts so many of all hits, or more, on the first side (Fisher's exact test).

    One-sided: R. A. Fisher, «Statistical Methods for Research Workers», 5th edition, 1934, section 21.02. The numbers
    of tries are above 0.
    """
    hits, tries = count + other, of + other_of
    ways = range(max(count, hits - other_of), min(of, hits) + 1)
    return min(
        1.0, sum(math.comb(of, k) * math.comb(other_of, hits - k) for k in ways) / math.comb(tries, hits)
    )


def order_statistics(count: int, share: float) -> tuple[int, int]:
    """Return the ranks between whose values the true quantile lies, of so many independent values.

    By the binomial distribution, at most 2.5 % on either side; a rank of 0 is below and of `count` + 1 above them all.
    """
    middle, around = count * share, 8 * math.sqrt(count * share * (1 - share)) + 8
    ranks = np.arange(max(0, math.floor(middle - around)), min(count, math.ceil(middle + around)) + 1)
    at_most = _special().bdtr(ranks.astype(float), count, share)
    tail = (1 - CONFIDENCE) / 2
    # P(true quantile < value of rank k) = P(fewer than k stay within it) = bdtr(k - 1).
    low = int(ranks[0]) + int(np.searchsorted(at_most, tail, side="right"))
    high = int(ranks[0]) + int(np.searchsorted(at_most, 1 - tail)) + 1
    return low, high


# --- What is left of values when all that is known of them is taken away, as a distribution that noise is drawn from.

FEWEST = 24
"""Under this many, residuals say too little of the shape of their distribution, and normal deviates are drawn."""


def shape(residuals: Iterable[NDArray[np.float64]]) -> tuple[float, ...]:
    """Return all of them, both signs, with variance 1; empty where they are too few to resample."""
    pool = np.concatenate([*residuals, np.zeros(0)])
    size = float(np.sqrt(np.mean(pool**2))) if pool.size else 0.0
    if pool.size < FEWEST or size < 1e-9:
        return ()
    pool = np.sort(np.round(pool / size, 3))
    return tuple(float(residual) for residual in np.concatenate([pool, -pool]))


# --- Compares contestants block by block: ratios with intervals that hold for all of them at once.
#
# The method and its sources stand in `docs/method.md`, «Comparing». In short: values are compared as logs, within
# blocks; the spread of a pair is what it shows itself, moderated by what the other contestants show and by what two
# equal servers are known to differ by; and the width of an interval comes from a bootstrap of the whole comparison, the
# choice of the best included, because the best of ten equal contestants always looks better.

NOISE = SHARES["throughput busy"].share
"""Standard deviation, from block to block, of the ratio of two equal busy servers (docs/method.md, «Noise»)."""
NOISE_DF = DF
"""How many degrees of freedom that knowledge is given: about as much as five blocks of one's own."""
SHARED_DF = 8.0
"""How many the spread of the other contestants is given at most: contestants need not be equally noisy."""
NOISIER_DF = 3.0
"""Degrees of freedom that blocks have at least where they are clearly noisier than presumed."""
_WORLDS = 4000
_AT_ONCE = 2_000_000
"""Numbers drawn at once."""


class Side(StrEnum):
    """Where the true number lies, seen from the measured number."""

    AT_LEAST = "at least"
    AT_MOST = "at most"


@dataclass(frozen=True)
class Hosts:
    """On which host each block ran, where several hosts ran the blocks of one race."""

    of: Mapping[int, str]
    alike: bool = True
    """Whether they are of one kind: CPU, number of CPUs, kernel, memory, system, virtualisation."""

    def by_host(self, values: Mapping[int, float]) -> list[NDArray[np.float64]]:
        """Return the values of blocks by host."""
        found: dict[str, list[float]] = {}
        for block, value in values.items():
            found.setdefault(self.of.get(block, ""), []).append(value)
        return [np.array(group) for _, group in sorted(found.items())]


@dataclass(frozen=True)
class Sample:
    """One contestant: its value in each block that counts, all above 0."""

    label: str
    values: Mapping[int, float]
    grain: float = 0.0
    """Standard deviation, as a share of the value, that counting whole requests alone gives it."""
    noise: float = NOISE
    """Presumed standard deviation of the log ratio of two such contestants that are equal."""
    noise_df: float = NOISE_DF
    """How well that is known."""
    side: Side | None = None
    """Where the true values lie if these are bounds: at least these, or at most."""
    hosts: Hosts | None = None
    """Where its blocks ran; None: all on one machine."""

    @property
    def presumed(self) -> float:
        """The variance of one value's logarithm, as presumed."""
        return self.noise**2 / 2 + self.grain**2


@dataclass(frozen=True)
class Pair:
    """The ratio of two contestants."""

    ratio: Interval
    spread: float
    """Standard deviation of the log ratio from block to block, moderated."""
    blocks: int
    prior_df: float = NOISE_DF + SHARED_DF
    """Degrees of freedom of what was known of the spread beside these blocks; 0: these blocks alone tell it."""
    hosts: int = 1
    """On how many these blocks ran."""
    between: float = 0.0
    """Variance of the log ratio's mean that comes of the hosts, and that further blocks on them do not lower."""


@dataclass
class Comparison:
    """All contestants of one question in one quantity. At least one, each with at least one block."""

    samples: Sequence[Sample]
    confidence: float = CONFIDENCE
    """With which all its pairs together hold."""
    _logs: dict[str, dict[int, float]] = field(init=False)
    _own: dict[str, float] = field(init=False)
    _shape: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._logs = {
            sample.label: {block: math.log(value) for block, value in sample.values.items()}
            for sample in self.samples
        }
        self._of = {sample.label: sample for sample in self.samples}
        residuals = self._within_hosts()
        # Over the presumed variance: so contestants of different regimes lend each other how restless this run was.
        self._own = {label: float(np.mean(found**2)) for label, found in residuals.items() if found.size > 1}
        self._shape = shape(residuals.values())

    def _within_hosts(self) -> dict[str, NDArray[np.float64]]:
        """Return what is left of each contestant's values (`_residuals`); on several hosts it has a level on each."""
        apart: dict[tuple[str, str], dict[int, float]] = {}
        for label, logs in self._logs.items():
            hosts = self._of[label].hosts
            for block, value in logs.items():
                apart.setdefault((label, hosts.of.get(block, "") if hosts else ""), {})[block] = value
        left = _residuals(apart, {(label, host): self._of[label].presumed for label, host in apart})
        return {
            label: np.concatenate([found for (name, _), found in left.items() if name == label])
            for label in self._logs
        }

    @property
    def restless(self) -> Mapping[str, tuple[float, float]]:
        """Of each the variance of its values over the presumed variance, and how many degrees of freedom that has."""
        cells = sum(len(self._logs[label]) for label in self._own)
        df = cells - len(self._logs) - len({block for logs in self._logs.values() for block in logs}) + 1
        return {
            label: (own, df * len(self._logs[label]) / cells) for label, own in self._own.items() if df > 0
        }

    def alone(self, label: str) -> Interval:
        """Return the value of one contestant over its blocks, with the interval its own spread deserves."""
        sample = self._of[label]
        logs = np.array(list(self._logs[label].values()))
        groups = sample.hosts.by_host(self._logs[label]) if sample.hosts else []
        if sample.hosts and len(groups) > 1:
            share = LEVEL_ALIKE if sample.hosts.alike else LEVEL_UNLIKE
            known = _Known(sample.presumed, sample.noise_df, (share * sample.noise) ** 2)
            found = _over_hosts(groups, known)
            width = critical_of_field(1, len(groups), found.prior_df)
            return of_logs(float(logs.mean()), width * math.sqrt(found.variance / logs.size))
        df, variance = _believe(sample.presumed, sample.noise_df, logs.size - 1.0, _variance(logs))
        half = critical_of_field(1, logs.size, df) * math.sqrt(variance / logs.size)
        return of_logs(float(logs.mean()), half)

    def pair(self, label: str, other: str) -> Pair | None:
        """Return `label` over `other`, over the blocks both have; None when they share none."""
        mine, theirs = self._logs[label], self._logs[other]
        by_block = {block: mine[block] - theirs[block] for block in mine if block in theirs}
        ratios = np.array([*by_block.values()])
        if not ratios.size:
            return None
        a, b = self._of[label], self._of[other]
        presumed, known_df = a.presumed + b.presumed, min(a.noise_df, b.noise_df)
        shared_df, factor = self._lent_by_field(label, other)
        prior = _moderated([(known_df, presumed), (shared_df, factor * presumed)])
        groups = a.hosts.by_host(by_block) if a.hosts else []
        if a.hosts and len(groups) > 1:
            share = RATIO_ALIKE if a.hosts.alike else RATIO_UNLIKE
            lent_df, lent = self._lent_of_hosts(label, other, a.hosts)
            found = _over_hosts(
                groups,
                _Known(prior, known_df + shared_df, share**2 * presumed, lent_df, lent * presumed),
            )
            width = critical_of_field(
                len(self.samples), len(groups), found.prior_df, confidence=self.confidence
            )
            half = width * math.sqrt(found.variance / ratios.size)
            return Pair(
                of_logs(float(ratios.mean()), half),
                math.sqrt(found.within),
                ratios.size,
                found.prior_df,
                len(groups),
                max(0.0, found.variance - found.within) / ratios.size,
            )
        df, variance = _believe(prior, known_df + shared_df, ratios.size - 1.0, _variance(ratios))
        width = critical_of_field(len(self.samples), ratios.size, df, self._shape, self.confidence)
        half = width * math.sqrt(variance / ratios.size)
        return Pair(of_logs(float(ratios.mean()), half), math.sqrt(variance), ratios.size, df)

    def half_width(self, pair: Pair, blocks: int) -> float:
        """Return what half the interval of a pair, as a log ratio, would be with that many blocks."""
        if pair.hosts > 1:
            width = critical_of_field(
                len(self.samples), pair.hosts, pair.prior_df, confidence=self.confidence
            )
            return width * math.sqrt(pair.spread**2 / blocks + pair.between)
        if pair.prior_df + blocks <= 1:
            return math.inf
        width = critical_of_field(len(self.samples), blocks, pair.prior_df, confidence=self.confidence)
        return width * pair.spread / math.sqrt(blocks)

    def _lent_by_field(self, label: str, other: str) -> tuple[float, float]:
        """Return what the rest of the field lends to a pair: degrees of freedom, and its variance over the presumed.

        The median, so that one contestant that runs wild does not widen the intervals of all others; it is
        divided by the median of its own distribution to be unbiased.
        """
        rest = [own for name, own in self._own.items() if name not in (label, other)]
        if len(rest) < 3:
            return 0.0, 0.0
        df = float(np.median([self._own_df(name) for name in self._logs]))
        if df < 1:
            return 0.0, 0.0
        return min(SHARED_DF, df * len(rest)), float(np.median(rest)) * df / median_of_chi2(df)

    def _own_df(self, label: str) -> int:
        """Return the degrees of freedom of a contestant's values: it has a level on each host."""
        hosts, logs = self._of[label].hosts, self._logs[label]
        return len(logs) - (len({hosts.of.get(block, "") for block in logs}) if hosts else 1)

    def _lent_of_hosts(self, label: str, other: str, hosts: Hosts) -> tuple[float, float]:
        """Return what the rest of the field says of how hosts differ in who is faster by how much.

        Degrees of freedom, and the mean square between hosts over the presumed variance: of it the median, as
        `_lent_by_field` takes it.
        """
        every = set().union(*(logs.keys() for logs in self._logs.values()))
        whole = [name for name, logs in self._logs.items() if logs.keys() == every]
        rest = [name for name in whole if name not in (label, other)]
        if len(rest) < 3:
            return 0.0, 0.0
        weights = {name: 1 / self._of[name].presumed for name in whole}
        sum_of = sum(weights.values())
        middle = {
            block: sum(weights[name] * self._logs[name][block] for name in whole) / sum_of for block in every
        }
        squares = []
        for name in rest:
            groups = hosts.by_host({block: self._logs[name][block] - middle[block] for block in every})
            squares.append(_between(groups) * weights[name] / (1 - weights[name] / sum_of))
        df = len({hosts.of.get(block, "") for block in every}) - 1.0
        return min(SHARED_DF, df * len(rest)), float(np.median(squares)) * df / median_of_chi2(df)


# --- Blocks of several hosts: what a host does to a figure is drawn once for all of its blocks, so these do not average
# it away. It is a random effect: a level has that of the host, a ratio that of host and contestant together (what the
# host does to both cancels).
#
# By mean squares, as in a nested analysis of variance (Box, Hunter and Hunter, chapter 9): blocks within hosts have the
# variance s², means of hosts (over n blocks) s² + n t². Both are moderated as all variances here, because two hosts
# have one degree of freedom. The presumed t is a share of the presumed noise.

RATIO_ALIKE, RATIO_UNLIKE = 0.2, 1.8
"""Presumed standard deviation of a ratio's logarithm over hosts, by the noise of a pair: 1 % or 9 % where busy servers
differ by 5 %. An assumption: hosts of several kinds were not there to measure it."""
LEVEL_ALIKE, LEVEL_UNLIKE = 1.0, 6.0
"""The same of a level, by the noise of a pair: 5 % or 30 %."""
HOSTS_DF = 4.0
"""Degrees of freedom that this is given."""


@dataclass(frozen=True)
class _Known:
    """What is known of figures of several hosts beside them."""

    within: float
    within_df: float
    between: float
    """Presumed variance over hosts."""
    lent_df: float = 0.0
    lent: float = 0.0
    """What others show of the mean square between hosts."""


@dataclass(frozen=True)
class _Found:
    """The variances of figures of several hosts."""

    within: float
    variance: float
    """That of the mean of all blocks, times their number."""
    prior_df: float
    """Degrees of freedom of it that the hosts do not give themselves."""


def _over_hosts(groups: Sequence[NDArray[np.float64]], known: _Known) -> _Found:
    """Return the variances of figures, by host; there are at least two."""
    sizes = np.array([group.size for group in groups], float)
    blocks, hosts = float(sizes.sum()), len(groups)
    own_df, own = _within(groups)
    prior_df, within = _believe(known.within, known.within_df, own_df, own)
    # Of the mean of all blocks, a host counts by its share of them; its mean square has it in full.
    blocks_each = float((sizes**2).sum()) / blocks
    part = blocks_each * known.between
    presumed = within + part
    # Satterthwaite: degrees of freedom of a sum of two variances.
    spread = within**2 / max(prior_df + own_df, 1.0) + part**2 / HOSTS_DF
    df = presumed**2 / spread if spread else HOSTS_DF
    prior = _moderated([(df, presumed), (known.lent_df, known.lent)])
    seen = _of_mean(groups, within)
    left, variance = _believe(prior, df + known.lent_df, hosts - 1.0, seen)
    # Whole tenths, or whole numbers: the worlds of an interval are drawn once for each.
    return _Found(within, variance, math.floor(10 * left) / 10 if left < 10 else float(math.floor(left)))


def variance_over_hosts(groups: Sequence[NDArray[np.float64]]) -> float:
    """Return the variance of the mean of all values, by host, times their number; 0 where there is one host.

    By mean squares, of these values alone.
    """
    return _of_mean(groups, _within(groups)[1]) if len(groups) > 1 else 0.0


def _of_mean(groups: Sequence[NDArray[np.float64]], within: float) -> float:
    """Return the same of two hosts or more, whose own values vary by `within`."""
    sizes = np.array([group.size for group in groups], float)
    each = float((sizes**2).sum() / sizes.sum())
    shows = (float(sizes.sum()) - each) / (len(groups) - 1)
    return max(0.0, within + each / shows * (_between(groups) - within))


def _within(groups: Sequence[NDArray[np.float64]]) -> tuple[float, float]:
    """Return the degrees of freedom and the mean square within hosts."""
    freedom = float(sum(group.size for group in groups) - len(groups))
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    return freedom, squares / freedom if freedom else 0.0


def _between(groups: Sequence[NDArray[np.float64]]) -> float:
    """Return the mean square between hosts."""
    if len(groups) < 2:
        return 0.0
    middle = float(np.concatenate(groups).mean())
    return sum(group.size * (float(group.mean()) - middle) ** 2 for group in groups) / (len(groups) - 1)


def host_levels(samples: Sequence[Sample]) -> list[tuple[str, str, Interval]]:
    """Return which hosts did more or less than the first by name, beyond chance: host, that first host, and the ratio.

    By the contestants that ran in every block: of each the block's value over its mean. All ratios hold together
    (Bonferroni).
    """
    every = set().union(*(sample.values.keys() for sample in samples), set())
    whole = [sample for sample in samples if sample.values.keys() == every and sample.hosts is not None]
    if not whole or whole[0].hosts is None:
        return []
    logs = {
        sample.label: {block: math.log(value) for block, value in sample.values.items()} for sample in whole
    }
    middle = {label: sum(own.values()) / len(own) for label, own in logs.items()}
    of_block = {
        block: float(np.mean([logs[label][block] - middle[label] for label in logs])) for block in every
    }
    hosts = whole[0].hosts
    names = sorted({hosts.of.get(block, "") for block in every})
    groups = dict(zip(names, hosts.by_host(of_block), strict=True))
    if len(names) < 2:
        return []
    own_df = float(len(every) - len(names))
    own = (
        sum(float(((group - group.mean()) ** 2).sum()) for group in groups.values()) / own_df
        if own_df
        else 0.0
    )
    noise = max(sample.presumed for sample in whole)
    df, variance = _believe(noise, min(sample.noise_df for sample in whole), own_df, own)
    width = student_t(df + own_df, 1 - (1 - CONFIDENCE) / (len(names) - 1))
    first = groups[names[0]]
    found = []
    for name in names[1:]:
        other = groups[name]
        half = width * math.sqrt(variance * (1 / first.size + 1 / other.size))
        ratio = of_logs(float(other.mean() - first.mean()), half)
        if ratio.low > 1 or ratio.high < 1:
            found.append((name, names[0], ratio))
    return found


def _believe(prior: float, prior_df: float, own_df: float, own: float) -> tuple[float, float]:
    """Return the variance to believe, and how many degrees of freedom of it are not the blocks' own.

    Blocks that are clearly noisier than presumed (F test) are believed alone: the presumed noise then says nothing.
    It still gives as many degrees of freedom as it takes to `NOISIER_DF`. Alone, two blocks have one, and an interval
    over six orders of magnitude; but theirs was taken because it was large, so it is seldom too small.
    """
    if own_df and own > prior * largest_ratio(own_df, prior_df):
        return max(0.0, NOISIER_DF - own_df), own
    return prior_df, _moderated([(prior_df, prior), (own_df, own)])


@lru_cache(maxsize=512)
def critical_of_field(
    contestants: int,
    blocks: int,
    prior_df: float,
    shape: tuple[float, ...] = (),
    confidence: float = CONFIDENCE,
) -> float:
    """Return how many standard errors wide half an interval must be to hold for a whole field of equals.

    Draws worlds in which all contestants are equal, picks the best in each as the judge does, and takes the
    quantile of `confidence` of the largest |t| between the best and any other. Each world has its own true variance,
    drawn around the known noise with `prior_df` degrees of freedom. With one contestant it is the t of its
    mean, with two that of their difference (Student's, for normal noise); with more it grows like Tukey's
    range.
    """
    draw = np.random.default_rng(20_071)
    scale = _true_noise(draw, prior_df, (_WORLDS, 1, 1))
    at_once = max(1, _AT_ONCE // (contestants * blocks))
    largest = []
    for first in range(0, _WORLDS, at_once):
        part = scale[first : first + at_once]
        noise = _noise(draw, shape, (len(part), contestants, blocks))
        noise = noise * part / (1 if contestants == 1 else math.sqrt(2))
        best = noise.mean(axis=2).argmax(axis=1)
        gaps = noise if contestants == 1 else noise[np.arange(len(part)), best][:, None, :] - noise
        variance = gaps.var(axis=2, ddof=1) if blocks > 1 else np.zeros(gaps.shape[:2])
        moderated = (prior_df + (blocks - 1) * variance) / (prior_df + blocks - 1)
        # The gap of the best to itself is 0, and without a prior so is its variance.
        t = np.abs(gaps.mean(axis=2)) * math.sqrt(blocks) / np.sqrt(np.maximum(moderated, 1e-300))
        largest.append(t.max(axis=1))
    return float(np.quantile(np.concatenate(largest), confidence))


def _noise(draw: np.random.Generator, shape: tuple[float, ...], size: tuple[int, ...]) -> NDArray[np.float64]:
    """Return noise of variance 1: drawn from what is left of the blocks of this machine, or normal."""
    return draw.choice(np.array(shape), size) if shape else draw.standard_normal(size)


def _true_noise(draw: np.random.Generator, df: float, size: int | tuple[int, ...]) -> NDArray[np.float64]:
    """Return for each world its true noise over the presumed noise, which is known with `df` degrees of freedom."""
    found: NDArray[np.float64] = np.sqrt(df / draw.chisquare(df, size)) if df else np.ones(size)
    return found


def _residuals(
    logs: Mapping[Key, Mapping[int, float]], presumed: Mapping[Key, float]
) -> dict[Key, NDArray[np.float64]]:
    """Return what is left of each value after its contestant's level and its block's, over what was presumed of it.

    A two-way fit by least squares, each value weighted by its presumed variance: a contestant that merely waits must
    not take over the noise of those that compute. Scaled so that their mean square is 1 where all is as presumed (the
    fit takes degrees of freedom away). The levels of the blocks are taken out first (Schur's complement), so that the
    time is linear in the blocks.
    """
    cells = [(label, block, value) for label, values in logs.items() for block, value in values.items()]
    labels, blocks = list(logs), sorted({block for _, block, _ in cells})
    number = {block: index for index, block in enumerate(blocks)}
    at_label = np.array([labels.index(label) for label, _, _ in cells], int)
    at_block = np.array([number[block] for _, block, _ in cells], int)
    values = np.array([value for _, _, value in cells])
    sizes = np.array([presumed[label] for label in labels])
    left, df = _fit(values, at_label, at_block, sizes.min() / sizes)
    if df <= 0:
        return {label: np.zeros(0) for label in labels}
    left *= np.sqrt(len(cells) / df / sizes)[at_label]
    return {label: left[at_label == place] for place, label in enumerate(labels)}


def _fit(
    values: NDArray[np.float64],
    at_label: NDArray[np.int_],
    at_block: NDArray[np.int_],
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.float64], int]:
    """Return the residuals of a two-way fit with a weight for each label, and their degrees of freedom."""
    labels, blocks = len(weights), int(at_block.max()) + 1
    weight = weights[at_label]
    there = np.zeros((blocks, labels))
    there[at_block, at_label] = weight
    size = there.sum(axis=1)
    means = np.bincount(at_block, weight * values, blocks) / size
    normal = np.diag(there.sum(axis=0)) - there.T @ (there / size[:, None])
    right = np.bincount(at_label, weight * values, labels) - there.T @ means
    levels, _, rank, _ = np.linalg.lstsq(normal, right, rcond=1e-9)
    left = values - levels[at_label]
    left -= (np.bincount(at_block, weight * left, blocks) / size)[at_block]
    return left, len(values) - int(rank) - blocks


def _moderated(parts: Sequence[tuple[float, float]]) -> float:
    """Return the mean of variances, each weighted by its degrees of freedom (Smyth 2004, formula of s̃²)."""
    return sum(df * variance for df, variance in parts) / sum(df for df, _ in parts)


def _variance(values: NDArray[np.float64]) -> float:
    return float(values.var(ddof=1)) if values.size > 1 else 0.0


def of_logs(middle: float, half: float) -> Interval:
    """Return the interval of a logarithm and half its width, as the values themselves.

    Two blocks that differ much more than presumed say next to nothing, and half the width may be hundreds: such an
    interval ends at 10^±300, which can be stored and printed.
    """
    low, high = (max(-_LARGEST_END, min(_LARGEST_END, end)) for end in (middle - half, middle + half))
    return Interval(math.exp(low), math.exp(middle), math.exp(high))


# --- A number of a cell, before it is compared: block by block, once with what is known of it, or missing.


@dataclass(frozen=True)
class Limit:
    """A number is where the measuring ended, not where the server did."""

    side: Side
    cure: str
    """What would let it reach further."""

    @property
    def flipped(self) -> "Limit":
        """Return the same of the reciprocal."""
        return replace(self, side=Side.AT_MOST if self.side is Side.AT_LEAST else Side.AT_LEAST)


@dataclass(frozen=True)
class Series:
    """A number in each block, all above 0; compared block by block."""

    values: Mapping[int, float]
    grain: float = 0.0
    """Standard deviation, as a share of the value, that counting alone, or a grid, gives it."""
    noise: float = NOISE
    """Standard deviation of the log ratio of two equal servers, where repeats cannot tell it."""
    limit: Limit | None = None
    noise_df: float = NOISE_DF
    """How well that is known."""
    hosts: Hosts | None = None
    """Where the blocks ran; None: all on one machine."""

    def sample(self, label: str) -> Sample:
        """Return it as a contestant."""
        side = self.limit.side if self.limit else None
        return Sample(label, self.values, self.grain, self.noise, self.noise_df, side, self.hosts)


@dataclass(frozen=True)
class Known:
    """A number that blocks do not pair: a share of a count, a fact, a profile."""

    interval: Interval


@dataclass(frozen=True)
class Missing:
    """Why there is no number."""

    reason: str


Number = Series | Known | Missing


def share(count: int, of: int) -> Known | Missing:
    """Return a share with its interval (`wilson`)."""
    if of <= 0:
        return Missing("no request was sent")
    low, high = wilson(count, of)
    return Known(Interval(low, count / of, high))


def count_events(values: list[float]) -> Known | Missing:
    """Return a count of events over blocks: its mean, and the fewest and most seen in a block."""
    if not values:
        return Missing("no block has it")
    return Known(Interval(min(values), sum(values) / len(values), max(values)))


# --- How many more blocks would settle how small a difference, and how long they would take.

TARGETS = (0.03, 0.05, 0.1, 0.2)
MOST_BLOCKS = 60
"""Nobody waits for more: a coarser difference is offered instead."""
START_S = 1.0
"""Start and stop of a server, where the times of trials cannot tell."""


def to_settle(comparison: Comparison, pair: Pair, block_s: float) -> str:
    """Return «6 more blocks (2 min) would settle a difference of 3 %», or nothing where that is settled."""
    for target in TARGETS:
        needed = _blocks(comparison, pair, log(1 + target))
        if needed is None:
            continue
        more = needed - pair.blocks
        if more <= 0:
            return ""
        blocks = f"{more} more block{'' if more == 1 else 's'} ({duration(more * block_s)})"
        return f"{blocks} would settle a difference of {target * 100:.0f} %"
    return (
        f"even {MOST_BLOCKS} blocks would not settle a difference of {TARGETS[-1] * 100:.0f} % here: the "
        "machine is too noisy; use a quieter one, or longer spans"
    )


def more_blocks(comparison: Comparison, pair: Pair, distance: float, block_s: float) -> str:
    """Return how many more blocks would tell a ratio from a bound that is `distance` away, in logs."""
    needed = _blocks(comparison, pair, distance)
    if needed is None:
        return f"it is so near that even {MOST_BLOCKS} blocks would not decide"
    more = max(needed - pair.blocks, 1)
    return f"{more} more block{'' if more == 1 else 's'} ({duration(more * block_s)}) would decide"


def block_s(results: Sequence[Measurement | Failed], labels: Sequence[str], question: str) -> float:
    """Return the seconds a block of these contestants in this question takes, by when its trials began."""
    gaps = _gaps(results)
    per_trial = median(gaps) if gaps else None
    loads = {
        (result.trial.load.label): result.trial.load
        for result in results
        if result.trial.question == question
    }
    at_least = START_S + sum(load.warmup_s + load.duration_s for load in loads.values())
    return len(labels) * (max(at_least, per_trial * len(loads)) if per_trial else at_least)


def fewest_blocks(
    half_width: Callable[[int], float], half: float, least: int = 1, most: int = MOST_BLOCKS
) -> int | None:
    """Return the fewest blocks with which half an interval, in logs, is no wider than `half`; None: more than `most`.

    `half_width` says how wide half of it is with so many blocks, which falls. The one answer to «how many more?»: for
    a race, a diff, a claim and a load in blocks.
    """
    if least > most or half_width(most) > half:
        return None
    low, high = least, most
    while low < high:
        middle = (low + high) // 2
        if half_width(middle) <= half:
            high = middle
        else:
            low = middle + 1
    return low


def _blocks(comparison: Comparison, pair: Pair, half: float) -> int | None:
    return fewest_blocks(lambda blocks: comparison.half_width(pair, blocks), half)


def _gaps(results: Sequence[Measurement | Failed]) -> list[float]:
    times = []
    for result in results:
        try:
            times.append(datetime.fromisoformat(result.started_at).timestamp())
        except ValueError:
            continue
    times.sort()
    # Longer gaps are pauses between a run and its resumption, not trials.
    return [later - earlier for earlier, later in pairwise(times) if 0 < later - earlier < 600]


# --- Many figures are looked at in one diff: by chance alone one of twenty looks like a change.
#
# Sture Holm, «A Simple Sequentially Rejective Multiple Test Procedure», Scandinavian Journal of Statistics 6, 1979:
# whatever the figures have to do with each other (those of one cell have much), the chance that any of them is called a
# change where nothing changed stays under the level.


def holm(chances: Sequence[float]) -> list[float]:
    """Return each chance as it is among all of them: compared with the level, it keeps that level for the family."""
    order = sorted(range(len(chances)), key=lambda index: chances[index])
    found = [0.0] * len(chances)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, chances[index] * (len(chances) - rank)))
        found[index] = largest
    return found


# --- A race that goes on until its answer is settled looks at it several times, and each look could err.
#
# It looks after 4 blocks, and again each time there are twice as many, up to 64: five looks. Each has a fifth of the
# level (Bonferroni), wherever it stops. Where the noise is known exactly 1.29 % each would do (as Pocock, «Group
# Sequential Methods in the Design and Analysis of Clinical Trials», Biometrika 64, 1977, found 1.58 % for equally
# spaced looks); the rest is for noise that is not (`benchmarks/intervals.py --table looks`). The level over the number
# of the look so far would not do: 1 + 1/2 + 1/3 … has no bound.

FIRST_LOOK = 4
LAST_LOOK = 64
LOOKS = 5
LOOKED_AT = float(LOOKS)
"""By which a chance is multiplied where a race could be looked at so often; 1: its length was fixed beforehand."""


def next_look(blocks: int) -> int:
    """Return after how many blocks a race is looked at that has so many."""
    at = FIRST_LOOK
    while at <= blocks:
        at *= 2
    return min(at, LAST_LOOK)


# --- How large a difference looks by chance alone: a bootstrap of worlds in which nothing changed.
#
# Each world has a true noise of its own, drawn around the presumed noise, because that is not known exactly; its blocks
# are drawn from what is left of this machine's blocks (residuals, both signs), or are normal where these are too few.
# In each the same statistic is taken as of the measurements: the mean difference over its standard error (bootstrap-t:
# Efron and Tibshirani, «An Introduction to the Bootstrap», 1993, chapters 12 and 16).

WORLDS = 25_000
"""The smallest chance that can be reported is one over these: enough for a thousand figures looked at together."""


@dataclass(frozen=True)
class Design:
    """How many blocks there are of both sides, and what is known of their noise beside them."""

    before: int
    after: int
    drift: float = 0.0
    """What the machine drifted by between two runs, over the presumed noise; 0: interleaved in one, block by block."""
    prior_df: float = NOISE_DF
    """Degrees of freedom of the presumed noise; 0: these blocks alone tell it."""

    @property
    def paired(self) -> bool:
        """Whether blocks are compared one by one."""
        return not self.drift

    @property
    def own_df(self) -> int:
        """Degrees of freedom that the blocks themselves give their noise."""
        return self.before - 1 if self.paired else self.before + self.after - 2


def by_chance(t: float, design: Design, shape: tuple[float, ...] = ()) -> float:
    """Return in which share of worlds without a difference the statistic is at least as far from 0 as `t`.

    With a shape of the noise, the larger of that by the shape and that by normal noise.
    """
    found = (
        (1 + WORLDS - int(np.searchsorted(_statistics(design, noise), abs(t)))) / (WORLDS + 1)
        for noise in {(), shape}
    )
    return min(1.0, max(found))


def critical_of_difference(chance: float, design: Design, shape: tuple[float, ...] = ()) -> float:
    """Return how many standard errors a difference reaches by chance in a share of worlds."""
    return max(float(np.quantile(_statistics(design, noise), 1 - chance)) for noise in {(), shape})


@lru_cache(maxsize=128)
def _statistics(design: Design, shape: tuple[float, ...]) -> NDArray[np.float64]:
    """Return the statistic's distance from 0 in every world, sorted."""
    draw = np.random.default_rng(20_071)
    blocks = design.before if design.paired else design.before + design.after
    at_once = max(1, _AT_ONCE // blocks)
    parts = [_draw(design, shape, min(at_once, WORLDS - done), draw) for done in range(0, WORLDS, at_once)]
    return np.sort(np.concatenate(parts))


def _draw(
    design: Design, shape: tuple[float, ...], worlds: int, draw: np.random.Generator
) -> NDArray[np.float64]:
    prior = design.prior_df

    if design.paired:
        ratios = _noise(draw, shape, (worlds, design.before)) * _true_noise(draw, prior, worlds)[:, None]
        spread = _moderated_worlds(_squares(ratios), design, 1.0)
        return _over(ratios.mean(axis=1), np.sqrt(spread / design.before))
    # One value has half the variance of a ratio of two; the drift is given as a multiple of the noise of a ratio.
    noise = _true_noise(draw, prior, worlds)[:, None] * np.sqrt(0.5)
    before, after = (
        _noise(draw, shape, (worlds, design.before)) * noise,
        _noise(draw, shape, (worlds, design.after)) * noise,
    )
    drift = design.drift * draw.standard_normal(worlds) * _true_noise(draw, NOISE_DF, worlds)
    spread = _moderated_worlds(_squares(before) + _squares(after), design, 0.5)
    error = np.sqrt(spread * (1 / design.before + 1 / design.after) + design.drift**2)
    return _over(after.mean(axis=1) - before.mean(axis=1) + drift, error)


def _over(difference: NDArray[np.float64], error: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far from 0, in standard errors; blocks that agree to the last digit are as far as can be."""
    found = np.full(difference.shape, np.inf)
    np.divide(np.abs(difference), error, out=found, where=error > 0)
    return found


def _squares(values: NDArray[np.float64]) -> NDArray[np.float64]:
    squares: NDArray[np.float64] = ((values - values.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return squares


def _moderated_worlds(squares: NDArray[np.float64], design: Design, presumed: float) -> NDArray[np.float64]:
    """Return the variance as `estimate` takes it: the presumed variance and the blocks' own, each by its weight."""
    return (design.prior_df * presumed + squares) / (design.prior_df + design.own_df)


# --- The difference of one figure: after over before, as a log ratio with its standard error.
#
# Paired by block where both were interleaved in one run: what blocks share cancels. Unpaired where they are two stored
# runs: the machine drifted between them by nobody knows how much, and no number of blocks tells it; it is presumed to
# have drifted by as much as two equal servers differ, and this stays however many blocks there are.
#
# The noise is what the blocks show, moderated by the presumed noise (Smyth 2004, see `docs/method.md`), which is scaled
# up where this machine is more restless than presumed in most of its figures (`Restlessness`), and never down.

_WIDEST_HALF = 100.0
"""Of the interval of a difference, as a log ratio: no number is so much larger than another."""
LEAST_DF = 3
"""Degrees of freedom that the blocks themselves must give before a figure is judged: four blocks of a race.

Some servers are fast or slow from start to start (threads that share the interpreter's lock: by 40 %), whatever is
presumed of them: of two or three blocks all may look alike by chance.
"""
_FEWEST_TO_TELL = 3
"""Figures that are needed before the machine is called more restless than presumed."""


@dataclass(frozen=True)
class Two:
    """One figure in the blocks of both sides."""

    before: Series
    after: Series
    drift: float = 0.0
    """What the machine is presumed to drift by between two runs, over the noise; 0: both are of one interleaved run."""

    @property
    def paired(self) -> bool:
        """Whether blocks are compared one by one."""
        return not self.drift

    @property
    def noise(self) -> float:
        """Presumed standard deviation of the log ratio in one block."""
        return max(self.before.noise, self.after.noise)

    @property
    def noise_df(self) -> float:
        """How well that is known."""
        return min(self.before.noise_df, self.after.noise_df)

    @property
    def grain(self) -> float:
        """The variance that counting alone adds to it."""
        return self.before.grain**2 + self.after.grain**2

    @cached_property
    def ratios(self) -> NDArray[np.float64]:
        """Log ratios of the blocks that both have; of runs that are not paired, none."""
        mine, theirs = self.after.values, self.before.values
        shared = [block for block in sorted(mine) if block in theirs] if self.paired else []
        return np.array([math.log(mine[block] / theirs[block]) for block in shared])

    @cached_property
    def design(self) -> Design:
        """How many blocks there are to compare."""
        if self.paired:
            return Design(len(self.ratios), len(self.ratios), prior_df=self.noise_df)
        return Design(len(self.before.values), len(self.after.values), self.drift, self.noise_df)

    @cached_property
    def middle(self) -> float:
        """The log ratio."""
        if self.paired:
            return float(self.ratios.mean())
        return float(_logs(self.after.values).mean() - _logs(self.before.values).mean())

    @cached_property
    def residuals(self) -> NDArray[np.float64]:
        """What is left of each ratio after the mean; of unpaired runs of each value, as large as of a ratio."""
        if self.paired:
            return _deviations(self.ratios)
        both = [_deviations(_logs(side.values)) for side in (self.before, self.after)]
        return np.concatenate(both) * math.sqrt(2)

    @cached_property
    def own(self) -> float:
        """The variance of a block's log ratio, by these blocks alone; 0 where a single block cannot tell."""
        df = self.design.own_df
        return float((self.residuals**2).sum()) / df if df > 0 else 0.0


@dataclass(frozen=True)
class Estimate:
    """How far after is from before, and how sure that is."""

    two: Two
    spread: float
    """Standard deviation of a block's log ratio, moderated."""
    drift: float
    """Standard deviation of what the machine did between two runs; 0 within a run."""
    design: Design
    shape: tuple[float, ...] = ()
    bundle: int = 1
    """So many blocks make one value."""

    @property
    def error(self) -> float:
        """Standard error of the log ratio."""
        return self._error(self.design)

    def _error(self, design: Design) -> float:
        if design.paired:
            return self.spread / math.sqrt(design.before)
        blocks = (1 / design.before + 1 / design.after) / 2
        return math.sqrt(self.spread**2 * blocks + self.drift**2)

    @cached_property
    def shown(self) -> Interval:
        """After over before, with the interval of this figure alone."""
        half = critical_of_difference(1 - CONFIDENCE, self.design, self.shape) * self.error
        half = min(half, _WIDEST_HALF)
        middle = self.two.middle
        return Interval(math.exp(middle - half), math.exp(middle), math.exp(middle + half))

    @property
    def share(self) -> Interval:
        """By which share after is more than before."""
        return Interval(self.shown.low - 1, self.shown.mid - 1, self.shown.high - 1)

    def chance(self, share: float = 0.0) -> float:
        """Return how often blocks differ so much by chance alone, if after truly is so much more than before."""
        distance = self.two.middle - math.log1p(share)
        return by_chance(distance / self.error, self.design, self.shape)

    @property
    def enough(self) -> bool:
        """Whether there are blocks enough to tell anything of it."""
        return self.design.own_df >= LEAST_DF

    def more_blocks(self, half_below: float, level: float = 1 - CONFIDENCE) -> int | None:
        """Return how many more blocks narrow half the interval, as a log ratio, so far; None: too many for anybody."""
        if self.drift:
            return None
        found = fewest_blocks(
            lambda blocks: self._half_width(blocks, level),
            half_below,
            max(self.design.before, LEAST_DF + 1),
            MOST_BLOCKS // self.bundle,
        )
        return None if found is None else max(found - self.design.before, 1) * self.bundle

    def _half_width(self, blocks: int, level: float) -> float:
        """Return what half the interval would be with so many blocks on both sides; noise taken as normal."""
        design = Design(blocks, blocks, prior_df=self.design.prior_df)
        df = max(design.prior_df + design.own_df, 1)
        return float(_special().stdtrit(df, 1 - level / 2)) * self._error(design)


@dataclass(frozen=True)
class Restlessness:
    """This machine's noise over the presumed noise, by all figures of a diff together."""

    factor: float
    """Of variances; at least 1."""
    shape: tuple[float, ...]
    """Of what is left of all blocks; empty where they are too few."""

    @staticmethod
    def of(figures: Sequence[Two]) -> "Restlessness":
        """Return it; the median, so that one figure that runs wild does not blur all others."""
        repeated = [figure for figure in figures if figure.design.own_df > 1]
        if len(repeated) < _FEWEST_TO_TELL:
            return Restlessness(1.0, ())
        df = float(np.median([figure.design.own_df for figure in repeated]))
        middle = float(np.median([figure.own / _presumed(figure) for figure in repeated]))
        factor = max(1.0, middle * df / median_of_chi2(df))
        scaled = [figure.residuals / math.sqrt(_spread_of(figure, factor)) for figure in repeated]
        return Restlessness(factor, shape(scaled))


def estimate(two: Two, machine: Restlessness, bundle: int = 1) -> Estimate:
    """Return the difference of a figure on this machine. There is at least one block to compare."""
    presumed, design = _presumed(two) * machine.factor, two.design
    variance = _spread_of(two, machine.factor)
    own_df = design.own_df
    if own_df > 1 and two.own > presumed * largest_ratio(own_df, two.noise_df):
        # Clearly noisier than presumed: what is presumed says nothing about this figure.
        design = Design(design.before, design.after, design.drift, 0.0)
        variance = two.own
    drift = two.drift * math.sqrt(presumed)
    return Estimate(two, math.sqrt(variance), drift, design, machine.shape, bundle)


def _presumed(two: Two) -> float:
    return two.noise**2 + two.grain


def _spread_of(two: Two, factor: float) -> float:
    return _moderated([(two.noise_df, _presumed(two) * factor), (two.design.own_df, two.own)])


def _logs(values: Mapping[int, float]) -> NDArray[np.float64]:
    logs: NDArray[np.float64] = np.log(np.array(list(values.values())))
    return logs


def _deviations(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what is left of values after their mean."""
    left: NDArray[np.float64] = values - values.mean()
    return left


# --- The share of requests without a right answer, before and after.
#
# Failures come together (one pause makes a hundred time-outs), so a share of a count is less sure than the count alone
# says: its variance is inflated by what the blocks show beyond it (overdispersion; McCullagh and Nelder, «Generalized
# Linear Models», 1989, section 4.5), moderated by a presumed factor, and never deflated. The interval of the difference
# is made of Wilson's intervals of both sides (R. G. Newcombe, «Interval Estimation for the Difference between
# Independent Proportions», Statistics in Medicine 17, 1998, method 10), with counts divided by that inflation.

PRESUMED_INFLATION = 2.0
"""Of failures that nothing but chance spreads over blocks it is 1; theirs come in bursts."""


@dataclass(frozen=True)
class Failing:
    """Failures of both sides."""

    before: Sequence[tuple[int, int]]
    """(failed requests, all requests) of each block."""
    after: Sequence[tuple[int, int]]

    @property
    def shares(self) -> tuple[float, float]:
        """Share of requests that failed, before and after."""
        return _failed_share(self.before), _failed_share(self.after)

    @property
    def any(self) -> bool:
        """Whether a request failed at all."""
        return any(self.shares)

    @property
    def enough(self) -> bool:
        """Whether there are blocks enough to tell anything of it: how failures come together is seen in them."""
        return len(self.before) + len(self.after) - 2 >= LEAST_DF

    @property
    def inflation(self) -> float:
        """By how much the variance is larger than that of independent failures."""
        df = len(self.before) + len(self.after) - 2
        own = sum(map(_pearson, (self.before, self.after)))
        return max(1.0, (NOISE_DF * PRESUMED_INFLATION + own) / (NOISE_DF + df))

    @property
    def alone(self) -> Interval:
        """The share after, whatever it was before."""
        return Interval(*self._wilson(self.after))

    @property
    def shown(self) -> Interval:
        """After less before, as a share of the requests."""
        (low, mid, high), (low_after, mid_after, high_after) = map(self._wilson, (self.before, self.after))
        difference = mid_after - mid
        below = math.hypot(mid_after - low_after, high - mid)
        above = math.hypot(high_after - mid_after, mid - low)
        return Interval(difference - below, difference, difference + above)

    @property
    def share(self) -> Interval:
        """The same: it is a share already."""
        return self.shown

    def more_blocks(self, _half_below: float, _level: float = 0.05) -> None:
        """Return None: how failures will come is unknown."""

    def chance(self, share: float = 0.0) -> float:
        """Return how often shares differ so much by chance alone, if they truly differ by `share`."""
        requests = [sum(count for _, count in side) for side in (self.before, self.after)]
        pooled = sum(failed for failed, _ in (*self.before, *self.after)) / sum(requests)
        variance = self.inflation * pooled * (1 - pooled) * (1 / requests[0] + 1 / requests[1])
        if not variance:
            return 1.0
        df = NOISE_DF + len(self.before) + len(self.after) - 2
        before, after = self.shares
        return beyond_t((after - before - share) / math.sqrt(variance), df)

    def _wilson(self, side: Sequence[tuple[int, int]]) -> tuple[float, float, float]:
        requests = max(round(sum(count for _, count in side) / self.inflation), 1)
        failed = min(round(sum(count for count, _ in side) / self.inflation), requests)
        low, high = wilson(failed, requests)
        return low, _failed_share(side), high


def _failed_share(side: Sequence[tuple[int, int]]) -> float:
    return sum(failed for failed, _ in side) / sum(requests for _, requests in side)


def _pearson(side: Sequence[tuple[int, int]]) -> float:
    """Return the squares of what blocks differ by from their side's share, over their variance by chance."""
    share = _failed_share(side)
    if not 0 < share < 1:
        return 0.0
    return sum(
        (failed - requests * share) ** 2 / (requests * share * (1 - share)) for failed, requests in side
    )
