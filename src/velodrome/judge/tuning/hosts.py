"""One race among settings, whose loads several hosts make at the same time; hosts that differ are told apart.

    shared = SharedRace(grid, wanted)
    racing(shared.share("a"))                  # the loads of a host (`racing.py`); another makes others meanwhile
    shared.take(candidate, observed)           # or a load that is stored, in the order of the file
    shared.apart                               # hosts whose loads do not count
    shared.claim_at("b")                       # what is claimed will be measured there

Hosts that are alike add to what starts of a server differ by, and the race has room for that. A host that is faster or
slower would deceive it: what happens to be measured there looks better or worse than it is. So each host begins with a
look at the same stack, and whatever two hosts measured of one setting shows by how much they differ. One that clearly
does, or where most loads are spoilt, is set apart: all is judged anew without its loads, and it makes no more. Where
hosts contradict each other, those stay that most others agree with.

Whatever is known is made of loads alone, as in `racing.py`. So the loads of a host that is lost still count, and
another measures what it had still to measure.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from velodrome.judge.statistics import of_logs
from velodrome.judge.tuning.knowing import REPORTED, Spread
from velodrome.judge.tuning.racing import INDIFFERENT, USUAL, Arm, Field, Share, new_arm
from velodrome.model.measurement import Purpose
from velodrome.model.quantity import Interval
from velodrome.model.tuning import Candidate, HostShare, Observation, Tuned, Wanted

STARTS_VARY = 0.1
"""By what starts of one server differ in cost at most, as a part."""
KNOWN = 2.0
"""Between the ends of the interval of a setting that says how hosts differ."""
NORMAL, SURE = 1.96, 3.0
"""Standard deviations of an interval that is reported, and of one that sets a host apart: that is looked at after every
load, so that 95 % would be wrong too often."""
SOME_LOADS, RESTLESS, CALM = 6, 0.5, 0.25
"""Of so many loads of a host that is left, more than the first part say nothing, because of other programs or its host;
while of another host it is less than the second part."""

Ratio = tuple[float, float]
"""The logarithm of one, and its variance."""


@dataclass
class _Own:
    """What one host measured."""

    arms: dict[str, Arm] = field(default_factory=dict)
    """By candidate: what is known of it by the loads of this host."""
    costs: dict[tuple[str, bool], dict[int, list[float]]] = field(default_factory=dict)
    """By candidate and whether the loop was closed, and by start: CPU of a request, logarithms. It is much less in a
    closed loop, where a server seldom sleeps."""
    looks: dict[str, bool] = field(default_factory=dict)
    """By stack, whether it answered when it was looked at."""
    loads: int = 0
    spoilt: int = 0
    """Of these, those that say nothing."""

    @property
    def spoilt_share(self) -> float:
        return self.spoilt / self.loads

    def cost(self, of: tuple[str, bool]) -> Ratio:
        """Return what requests cost, over starts."""
        starts = [math.fsum(logs) / len(logs) for logs in self.costs[of].values()]
        return math.fsum(starts) / len(starts), STARTS_VARY**2 / len(starts)


class SharedRace:
    """A race over several hosts, and what their loads say."""

    def __init__(self, grid: Sequence[Candidate], wanted: Wanted) -> None:
        self.grid, self.wanted = tuple(grid), wanted
        self.field = Field(grid, wanted)
        """What is known by the loads that count."""
        self.home = ""
        """Host that what is claimed is measured on; empty: it is not chosen."""
        self.apart: set[str] = set()
        """Hosts whose loads do not count."""
        self._own: dict[str, _Own] = {}
        self._taken: list[tuple[Candidate, Observation]] = []
        self._skipped: set[str] = set()
        """Stacks with loads that do not count, because no host that is left has looked at them."""

    def share(self, host: str) -> Share:
        """Return what a host sees and does of the race."""
        return Share(lambda: self.field, self.take, host, lambda: host not in self.apart)

    def claim_at(self, host: str) -> None:
        """Have what is claimed be measured on a host, and judge by hosts that are like it."""
        self.home = host
        if host in self.apart:
            self.apart = {other for other in self._own if other != host and self._differ(host, other)}
            self._judge_anew()

    def busiest(self, hosts: Sequence[str]) -> str:
        """Return which of some hosts made most loads that count."""
        alike = [host for host in sorted(hosts) if host not in self.apart] or sorted(hosts)
        return max(alike, key=lambda host: self._own[host].loads if host in self._own else 0)

    # --- taking loads in

    def take(self, candidate: Candidate, observed: Observation) -> None:
        """Take a load in."""
        self._taken.append((candidate, observed))
        if observed.host not in self.apart:
            self._take(candidate, observed)
        self._note(candidate, observed)
        self._tell_apart(observed.host)

    def _take(self, candidate: Candidate, observed: Observation) -> None:
        stack, known = candidate.contestant.stack, self.field.knows(candidate)
        if not observed.ask.connections and not known:
            self._skipped.add(stack)
            return
        self.field.take(candidate, observed)
        if not known and stack in self._skipped and self.field.knows(candidate):
            self._judge_anew()

    def _judge_anew(self) -> None:
        self.field, self._skipped = Field(self.grid, self.wanted), set()
        # Looks first: others may have measured a stack before one that counts had looked at it.
        for looks in (True, False):
            for candidate, observed in self._taken:
                if observed.host not in self.apart and bool(observed.ask.connections) is looks:
                    self._take(candidate, observed)

    def _note(self, candidate: Candidate, observed: Observation) -> None:
        """Keep what a load says of its host."""
        own, stack = self._own.setdefault(observed.host, _Own()), candidate.contestant.stack
        own.loads += 1
        own.spoilt += bool(observed.spoilt)
        if observed.ask.connections:
            own.looks[stack] = own.looks.get(stack, True) and not observed.failed
        if observed.ask.purpose is not Purpose.ALONE and observed.cpu_us:
            starts = own.costs.setdefault((candidate.label, bool(observed.ask.connections)), {})
            starts.setdefault(observed.boot, []).append(math.log(observed.cpu_us))
        if observed.ask.connections or observed.host in self.apart or not self.field.knows(candidate):
            return
        arm = own.arms.get(candidate.label)
        if arm is None:
            found, look = self.field.arm_of(candidate).forecast, self.field.looks[stack]
            arm = new_arm(candidate, found, look, self.wanted, Spread(USUAL.get(self.wanted.goal, 0.0)))
            own.arms[candidate.label] = arm
        arm.take(replace(observed, ask=replace(observed.ask, purpose=Purpose.RATE)), self.wanted.goal)

    # --- telling hosts apart

    def _tell_apart(self, host: str) -> None:
        """Set hosts apart that differ from that of the claim, once a host has made a load more."""
        alike = [other for other in sorted(self._own) if other not in self.apart]
        if host in self.apart:
            return
        if self._is_restless(host, alike):
            alike.remove(host)
            self._set_apart({host}, self.busiest(alike) if self.home == host else self.home)
            return
        if not any(self._differ(host, other) for other in alike if other != host):
            return
        differ = {
            one: {other for other in alike if other != one and self._differ(one, other)} for one in alike
        }

        def odd(one: str) -> tuple[int, int, bool, str]:
            fails = sum(not answered for answered in self._own[one].looks.values())
            return len(differ[one]), fails, one != self.home, one

        home = min(alike, key=odd)
        if differ[home]:
            self._set_apart(differ[home], home)

    def _set_apart(self, hosts: Collection[str], home: str) -> None:
        self.home = home
        self.apart.update(hosts)
        self._judge_anew()

    def _is_restless(self, host: str, alike: Sequence[str]) -> bool:
        """Whether most loads of a host say nothing, where another shows that they could."""
        known = [self._own[other] for other in alike if self._own[other].loads >= SOME_LOADS]
        restless = self._own[host] in known and self._own[host].spoilt_share > RESTLESS
        return restless and any(own.spoilt_share < CALM for own in known)

    def _differ(self, one: str, other: str) -> bool:
        """Whether two hosts clearly differ: a stack fails on one of them only, or settings do more or less there, or
        requests cost more or less."""
        here, there = self._own[one].looks, self._own[other].looks
        if any(here[stack] is not there[stack] for stack in here.keys() & there.keys()):
            return True
        both = self._settings(one, other), self._costs(one, other)
        return any(_differs(_mean(ratios, SURE)) for ratios in both)

    def _settings(self, one: str, other: str) -> list[Ratio]:
        """Return how many times as much settings did on one host as on another, each as it is known."""
        here, there = self._own[one].arms, self._own[other].arms
        pairs = [(here[label], there[label]) for label in here.keys() & there.keys()]
        return [
            (math.log(mine.mid / theirs.mid), _variance(mine) + _variance(theirs))
            for mine, theirs in pairs
            if _is_measured(mine) and _is_measured(theirs)
        ]

    def _costs(self, one: str, other: str) -> list[Ratio]:
        """Return how many times as cheap requests were on one host as on another."""
        here, there = self._own[one], self._own[other]
        pairs = [(here.cost(of), there.cost(of)) for of in sorted(here.costs.keys() & there.costs.keys())]
        return [(theirs[0] - mine[0], mine[1] + theirs[1]) for mine, theirs in pairs]

    # --- the end

    def result(self, out_of_time: bool) -> Tuned:
        """Return what came of it; `out_of_time`: no more could be measured."""
        return replace(self.field.result(out_of_time), trials=len(self._taken), hosts=self.shares())

    def shares(self) -> tuple[HostShare, ...]:
        """Return what each host did, that of the claim first, and how it differs from that."""
        hosts = {*self._own, *([self.home] if self.home else [])}
        return tuple(map(self._share, sorted(hosts, key=lambda host: (host != self.home, host))))

    def _share(self, host: str) -> HostShare:
        own = self._own.get(host, _Own())
        measured = {
            candidate.contestant.stack for candidate, observed in self._taken if observed.host == host
        }
        stacks = tuple(stack for stack in self.field.stacks if stack in measured)
        beside = None
        if host != self.home and self.home in self._own:
            beside = _mean(self._settings(host, self.home) or self._costs(host, self.home), NORMAL)
        apart = host in self.apart
        return HostShare(host, stacks, own.loads, host == self.home, beside, apart or _differs(beside), apart)


def _mean(ratios: Sequence[Ratio], deviations: float) -> Interval | None:
    """Return the mean of ratios, and its interval of so many standard deviations; None: there is none."""
    if not ratios:
        return None
    weight = math.fsum(1 / variance for _, variance in ratios)
    mean = math.fsum(ratio / variance for ratio, variance in ratios) / weight
    count = len(ratios)
    between = math.fsum((ratio - mean) ** 2 for ratio, _ in ratios) / max(count - 1, 1) / count
    return of_logs(mean, deviations * math.sqrt(max(1 / weight, between)))


def _differs(beside: Interval | None) -> bool:
    return beside is not None and not (beside.low <= 1 + INDIFFERENT and beside.high >= 1 / (1 + INDIFFERENT))


def _is_measured(arm: Arm) -> bool:
    """Whether it is known within a factor of `KNOWN`."""
    found = arm.known.interval(REPORTED)
    return arm.running and bool(arm.known.holds) and found.high < KNOWN * found.low


def _variance(arm: Arm) -> float:
    """Of the logarithm of what is known of an arm, by its interval."""
    found = arm.known.interval(REPORTED)
    return (math.log(found.high / found.low) / 2 / NORMAL) ** 2
