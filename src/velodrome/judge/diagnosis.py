"""What the doctor's measurements come to: how many requests are in work at once, and whether an arm differs.

    slope(points, pairs).in_work          Interval(39.1, 40.2, 41.5)
    judge_arms(arms, ("rps",), proof="cure")  -> Judged, or None while more blocks may tell

A treated arm differs where chance alone makes blocks look so different in fewer than `LEVEL` of all experiments, all
looks and metrics together (Bonferroni; the kernel is that of `velodrome diff`, `judge/statistics.py`), and by
so much that anybody would care. It is no cause where the interval leaves that out.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from velodrome.judge.statistics import (
    Estimate,
    Failing,
    Restlessness,
    Series,
    Two,
    estimate,
    more_by_chance,
    student_t,
)
from velodrome.model.diagnosis import METRICS, RISES, SHARE, Arms, Counts, Disturbance, Ruling, SloRate
from velodrome.model.measurement import Flag, FlagKind, Severity
from velodrome.model.noise import SHIPPED, Spread
from velodrome.model.quantity import Interval, significant
from velodrome.model.symptoms import Point, Slope

LEVEL = 0.01
"""Chance that an experiment accuses what changes nothing."""
LOOKS = (4, 8, 16, 32)
"""Blocks after which an experiment is looked at: more than twice only where it was found so much that it would be worth
a diagnosis, and could not be told from noise."""
FAULT: Mapping[str, float] = {"rps": 1.1, "mean_ms": 1.1, "p50_ms": 1.1, "p99_ms": 1.5, "cpu_us": 1.1}
"""What the better arm has to be better by, as a ratio, to be worth a diagnosis."""
WRONG = 0.01
"""Share of wrong answers that the treated arm may have more than the arm as it is."""
KNEE = 0.95
"""Of the plateau, what the fewest connections reach that are enough."""
RISES_BY = 1.05
CALM = Restlessness(1.0, ())
DOSED_WITHIN = 0.05
"""A dose is twice the fault within this part."""
MOST_SHARES = (0.85, 0.9, 0.95)
"""Of a request's time a fault takes so much at most, as the low end, middle and high end of an interval: where twice
the fault costs nearly twice the time, hardly any is left without it, and how little is not known."""


def slope(
    points: Sequence[Point],
    pairs: Sequence[tuple[float, float]],
    *,
    cut: bool = False,
    died: bool = False,
    ended: bool = False,
) -> Slope:
    """Return how throughput rises; `pairs` are throughputs of one connection and of the plateau. Neither is empty.

    `cut`: there was no time for more connections; `died`: with more nothing was answered right; `ended`: the server
    answered nothing right any more when it was to be measured again, and the pairs are of another one.
    """
    top = max(points, key=lambda point: point.rps)
    knee = next(point.connections for point in points if point.rps >= KNEE * top.rps)
    rises = len(points) > 1 and points[-1].rps > RISES_BY * max(point.rps for point in points[:-1])
    alone, plateau = (Series(dict(enumerate(side))) for side in zip(*pairs, strict=True))
    lasts = 0.0 if ended else None
    if len(pairs) > 1 and not ended:
        lasts = min(pairs[-1][0] / max(points[0].rps, 1e-9), pairs[-1][1] / max(top.rps, 1e-9))
    bears = points[-1].connections if died else 0
    return Slope(
        tuple(points), estimate(Two(alone, plateau), CALM).shown, knee, rises, cut, bears=bears, lasts=lasts
    )


def disturbances(loads: Sequence[Sequence[Flag]]) -> tuple[Disturbance, ...]:
    """Return what else happened to the machine in loads, of which these are the flags, the most frequent first."""
    found: dict[FlagKind, list[Flag]] = {}
    for flags in loads:
        for flag in flags:
            if flag.kind.of_the_moment and flag.severity is Severity.INVALID:
                found.setdefault(flag.kind, []).append(flag)
    every = []
    for kind, flags in found.items():
        worst = max(flags, key=lambda flag: float(flag.facts.get("share", 0.0)))
        every.append(Disturbance(str(kind), len(flags), len(loads), worst.sentence))
    return tuple(sorted(every, key=lambda one: -one.loads))


@dataclass(frozen=True)
class Judged:
    """What an experiment comes to."""

    ruling: Ruling
    reason: str
    effect: Mapping[str, Interval] = field(default_factory=dict)
    gain: float = 1.0
    """Throughput of the better arm over that of the other."""
    breaks: bool = False
    """Whether the treated arm answers wrongly: what was changed does not fit this app."""


def judge_arms(
    arms: Arms, metrics: Sequence[str], proof: str, most_rps: Interval | None = None, *, last: bool = False
) -> Judged | None:
    """Return what the blocks there are tell; None: they do not, and further ones may, unless these are the `last`.

    `proof` is `cure` where the second arm is treated, `dose` where it has more of the fault. One metric that differs
    is enough. At least one block is there. A fault costs no more throughput than up to `most_rps`: a dose says what the
    fault takes of a request, and not what bounds requests once it is gone.
    """
    if (more := _wrong(arms)) > WRONG:
        return Judged(
            Ruling.CANNOT_TELL,
            f"the treated arm answers {more:.1%} more of the requests wrongly than the other",
            breaks=True,
        )
    better = {metric: _better(arms, metric, proof) for metric in metrics}
    if not all(effect.enough for effect in better.values()):
        return None
    for metric, found in better.items():
        chance = found.chance() * len(LOOKS) * len(metrics)
        if found.two.middle > 0 and chance < LEVEL and found.shown.mid >= FAULT[metric]:
            reason = f"{_NAMES[metric]} {_times(found.shown)} better {_WHERE[proof]}"
            return Judged(Ruling.CAUSE, reason, _effect(arms, proof, most_rps), _gain(arms, proof))
    if all(found.shown.high < FAULT[metric] for metric, found in better.items()):
        worst = max(better.items(), key=lambda pair: pair[1].shown.high / FAULT[pair[0]])
        reason = f"{_NAMES[worst[0]]} {_times(worst[1].shown)} better {_WHERE[proof]}: not worth a cure"
        return Judged(Ruling.NOT_A_CAUSE, reason, gain=_gain(arms, proof))
    promising = any(found.shown.mid >= FAULT[metric] for metric, found in better.items())
    if not last and len(arms.blocks) < LOOKS[-1 if promising else 1]:
        return None
    widest = max(better.items(), key=lambda pair: pair[1].shown.high / FAULT[pair[0]])
    reason = f"after {len(arms.blocks)} blocks {_NAMES[widest[0]]} is {_times(widest[1].shown)} better {_WHERE[proof]}"
    return Judged(Ruling.CANNOT_TELL, reason, gain=_gain(arms, proof))


COUNT_LOOKS = (2, 4)
"""Blocks after which an experiment that counts is looked at; one whose probe repeats itself after the first, too."""


def judge_counts(counts: Counts, proof: str) -> Judged | None:
    """Return what the blocks of an experiment that counts tell; None: they do not, and further ones may.

    Failures come together, so the counts are divided by how much they do (`Failing`), and then compared exactly. Every
    block has to agree. At least one block is there.
    """
    probe = counts.probe
    worse, better = (0, 1) if proof == "cure" else (1, 0)
    sides = [[(block[side].hits, block[side].of) for block in counts.blocks] for side in (better, worse)]
    if not all(of for side in sides for _, of in side):
        return Judged(Ruling.CANNOT_TELL, f"{probe.about}: in an arm nothing could be counted")
    if len(counts.blocks) < COUNT_LOOKS[0] and not (probe.repeats and not any(hits for hits, _ in sides[1])):
        return None
    both = Failing(*sides)
    low, high = both.shares
    reason = f"{_of(sides[1])} {probe.counts} {_PROVOKED[proof]}, {_of(sides[0])} {_UNPROVOKED[proof]}"
    more = Interval(max(both.shown.low, 0.0), both.shown.mid, both.shown.high)
    chance = more_by_chance(*_deflated(sides[1], both), *_deflated(sides[0], both)) * len(COUNT_LOOKS)
    agree = all(block[worse].share - block[better].share > probe.worth / 2 for block in counts.blocks)
    if agree and chance < LEVEL and more.mid >= probe.worth:
        return Judged(Ruling.CAUSE, reason, {SHARE: more}, 1 + high - low)
    if more.high < probe.worth:
        return Judged(Ruling.NOT_A_CAUSE, f"{reason}: no difference that matters")
    return Judged(Ruling.CANNOT_TELL, reason) if len(counts.blocks) >= COUNT_LOOKS[-1] else None


_PROVOKED = {"cure": "as it is", "dose": "with it"}
_UNPROVOKED = {"cure": "in the cured arm", "dose": "without"}


def _of(side: Sequence[tuple[int, int]]) -> str:
    return f"{sum(hits for hits, _ in side)} of {sum(of for _, of in side)}"


def _deflated(side: Sequence[tuple[int, int]], both: Failing) -> tuple[int, int]:
    of = max(round(sum(of for _, of in side) / both.inflation), 1)
    return min(round(sum(hits for hits, _ in side) / both.inflation), of), of


_NAMES = {
    "rps": "throughput",
    "mean_ms": "the mean latency",
    "p50_ms": "the p50",
    "p99_ms": "the p99",
    "cpu_us": "CPU time per request",
}
_WHERE = {"cure": "in the cured arm", "dose": "without the larger dose"}


def _times(ratio: Interval) -> str:
    return f"{significant(ratio.mid)}× [{significant(ratio.low)}, {significant(ratio.high)}]"


def _wrong(arms: Arms) -> float:
    before, after = ([block[side].errors for block in arms.blocks] for side in (0, 1))
    return sum(after) / len(after) - sum(before) / len(before)


def _better(arms: Arms, metric: str, proof: str) -> Estimate:
    """Return how much better the arm is that should be better: a ratio above 1 is an improvement."""
    worse, better = (0, 1) if proof == "cure" else (1, 0)
    low, high = (worse, better) if metric in RISES else (better, worse)
    return estimate(Two(_series(arms, metric, low), _series(arms, metric, high)), CALM)


def _series(arms: Arms, metric: str, side: int) -> Series:
    values = {number: max(block[side].of(metric), 1e-9) for number, block in enumerate(arms.blocks)}
    middle = math.exp(sum(map(math.log, values.values())) / len(values))
    known = _noise(metric, middle)
    return Series(values, noise=known.share, noise_df=known.df)


def _noise(metric: str, middle: float) -> Spread:
    if metric == "rps":
        return SHIPPED.throughput(1.0)
    if metric == "cpu_us":
        return SHIPPED.cpu(1.0)
    return SHIPPED.latency(metric.removesuffix("_ms"), middle)


def _gain(arms: Arms, proof: str) -> float:
    return math.exp(_better(arms, "rps", proof).two.middle)


def _effect(arms: Arms, proof: str, most_rps: Interval | None) -> dict[str, Interval]:
    """Return what the fault costs by each metric: what is lost of throughput, and added to the others."""
    found = {}
    for metric in METRICS:
        as_it_is = _level(arms, metric)
        ratio = _better(arms, metric, proof).shown
        times = _undosed(ratio) if proof == "dose" else (ratio.low, ratio.mid, ratio.high)
        if metric in RISES:
            found[metric] = Interval(*(as_it_is * (factor - 1) for factor in times))
        else:
            found[metric] = Interval(*(as_it_is * (1 - 1 / factor) for factor in times))
    if most_rps is not None:
        now, lost = _level(arms, "rps"), found["rps"]
        ends = ((lost.low, most_rps.low), (lost.mid, most_rps.mid), (lost.high, most_rps.high))
        found["rps"] = Interval(*(min(end, max(most - now, 0.0)) for end, most in ends))
    return found


def levels(arms: Arms) -> dict[str, dict[str, list[float]]]:
    """Return each metric of both arms as low end, middle and high end of a 95 % interval over blocks (Student's t, of
    logarithms); of one block, only its value. Arms are compared by their ratio block by block, not by these.
    """
    return {
        name: {metric: _ends([block[side].of(metric) for block in arms.blocks]) for metric in METRICS}
        for side, name in enumerate(("before", "after"))
    }


def _ends(values: Sequence[float]) -> list[float]:
    logs = [math.log(max(value, 1e-9)) for value in values]
    middle = fmean(logs)
    half = student_t(len(logs) - 1) * stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else 0.0
    return [math.exp(middle + offset) for offset in (-half, 0.0, half)]


def _level(arms: Arms, metric: str) -> float:
    """Return the middle of the arm that has the fault as the app has it."""
    values = [max(block[0].of(metric), 1e-9) for block in arms.blocks]
    return math.exp(sum(map(math.log, values)) / len(values))


def _undosed(ratio: Interval) -> tuple[float, float, float]:
    """Return how much better it would be without the fault, of which twice as much costs this ratio.

    A request takes T, and r·T with twice the fault: the fault takes (r - 1)·T, and without it (2 - r)·T are left.
    """
    low, mid, high = ratio.low - 1, ratio.mid - 1, ratio.high - 1
    off = DOSED_WITHIN
    shares = (min(low / (1 + off), low / (1 - off)), mid, max(high / (1 + off), high / (1 - off)))
    least, middle, most = (1 / (1 - min(each)) for each in zip(shares, MOST_SHARES, strict=True))
    return least, middle, most


def rate_lost(as_it_is: SloRate, cured: SloRate) -> Interval | None:
    """Return by how much the rate up to which an SLO holds is higher with the cure; None: it is unknown."""
    if cured.rate is None or (as_it_is.rate is None and as_it_is.holds is not False):
        return None
    before = as_it_is.rate or Interval(0.0, 0.0, 0.0)
    after = cured.rate
    return Interval(after.low - before.high, after.mid - before.mid, after.high - before.low)


def unexplained(as_it_is: Slope, cured: Slope, room: float) -> float:
    """Return the share of a request's time that neither causes nor the request itself account for, from 0 to 1.

    Of the closed loop that fills the server as it is. `cured` is the slope with all causes cured, `room` the CPUs that
    its processes can use. What a request needs itself is what it takes alone, or where that is longer, as long as the
    CPU time of all requests in flight.
    """
    count = as_it_is.plateau.connections
    before = next(point for point in as_it_is.points if point.connections == count)
    after = next((point for point in cured.points if point.connections == count), cured.points[-1])
    took = 1000 * before.connections / before.rps
    left = 1000 * after.connections / after.rps
    alone = 1000 / cured.alone.rps
    computing = 1000 * after.connections * after.cpus / after.rps / room
    return min(max(0.0, (left - max(alone, computing)) / took), 1.0)
