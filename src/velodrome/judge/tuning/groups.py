"""The race among settings over several hosts: groups of stacks that race on a host each, and a final on one host.

    groups = Groups(grid, wanted)
    groups.next_stack("a", present={"a", "b"})         # a host takes the next stack when it is free
    groups.take("a", candidate, observed, final=False)
    groups.begin_final("a")                            # its group, and the best of each other group

What a host does to all settings alike cancels where they are compared on one host, so they are only ever compared on
one: within a group, and in the final, which goes on with the group of its host. No figure of one host is weighed
against one of another, and none is averaged over hosts. By how much hosts differ shows in the settings that were
measured in their group and in the final.

Whatever is known is made of loads alone, as in `racing.py`: a stack belongs to the group of the host that looked at it
last, and the final is on the host that measured for it last. What a lost host measured of a stack that another looked
at anew never counts.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from velodrome.judge.statistics import of_logs
from velodrome.judge.tuning.knowing import REPORTED
from velodrome.judge.tuning.racing import INDIFFERENT, UNSEEN_WHY, Arm, Field
from velodrome.model.measurement import Purpose
from velodrome.model.quantity import Interval
from velodrome.model.trial import Contestant
from velodrome.model.tuning import (
    Candidate,
    Entry,
    Fate,
    HostShare,
    Observation,
    Tuned,
    TuneEnding,
    Wanted,
)

LOOK_VARIES = 0.1
"""By what looks at one stack differ, as a part: its starts do by 5 to 10 %."""
NORMAL = 1.96
"""Standard deviations within which 95 % of a normal distribution lie."""


@dataclass
class _Taken:
    """A load of a group."""

    candidate: Candidate
    observed: Observation


class Groups:
    """Settings that several hosts race, and what their loads say."""

    def __init__(self, grid: Sequence[Candidate], wanted: Wanted) -> None:
        self.grid, self.wanted = tuple(grid), wanted
        self.fields: dict[str, Field] = {}
        """Of each host that has a group."""
        self.final = Field((), wanted)
        self.home = ""
        """Host of the final; empty: it has not begun."""
        self._owners: dict[str, str] = {}
        """By stack, the host whose group it is in."""
        self._taken: dict[str, list[_Taken]] = {}

    @property
    def stacks(self) -> tuple[str, ...]:
        """All of them, in the order of the grid."""
        return tuple(dict.fromkeys(candidate.contestant.stack for candidate in self.grid))

    @property
    def raced(self) -> int:
        """Loads of all groups and of the final, without those that confirm."""
        return self.final.raced + sum(field.raced for field in self._others())

    # --- who races where

    def next_stack(self, host: str, present: Collection[str]) -> tuple[Candidate, ...]:
        """Put the next stack into the group of a host, and return its candidates; none: there is no stack left.

        What a host that is not `present` any more had not settled is given back.
        """
        for stack in self.stacks:
            owner = self._owners.get(stack, "")
            if not owner or (owner not in present and self._is_open(owner)):
                self._give(stack, host)
                return self._of(stack)
        return ()

    def field(self, host: str) -> Field:
        """Return what is known of the group of a host."""
        return self.fields.setdefault(host, Field((), self.wanted))

    def begin_final(self, host: str) -> Field:
        """Go on with the group of a host, and with the best of each other group; with all where there are no groups.

        What the host has measured of its group counts in the final, because it is of the same host.
        """
        self.home = host
        own = self._taken.get(host, [])
        finalists = [candidate for field in self._others() if field.arms for candidate in field.qualified]
        stacks = dict.fromkeys(taken.candidate.contestant.stack for taken in own)
        grid = [*(candidate for stack in stacks for candidate in self._of(stack)), *finalists]
        self.final = Field(grid if self.fields else self.grid, self.wanted)
        for taken in own:
            self.final.take(taken.candidate, taken.observed)
        return self.final

    def next_home(self, prepared: Collection[str]) -> str:
        """Return the host where most of those are that may be the best: they are not measured again."""
        return max(
            sorted(prepared), key=lambda one: len(self.fields[one].qualified) if one in self.fields else 0
        )

    def _others(self) -> list[Field]:
        """Return the groups of hosts other than that of the final, in the order of their names."""
        return [self.fields[host] for host in sorted(self.fields) if host != self.home]

    def candidate_of(self, contestant: Contestant) -> Candidate:
        """Return a candidate of the grid, or a neighbour of one. Raises KeyError for none of these."""
        return Field(self.grid, self.wanted).candidate_of(contestant)

    def _of(self, stack: str) -> tuple[Candidate, ...]:
        return tuple(candidate for candidate in self.grid if candidate.contestant.stack == stack)

    def _give(self, stack: str, host: str) -> None:
        owner = self._owners.get(stack)
        self._owners[stack] = host
        if owner is not None and owner != host:  # what is left of its group, without that stack
            left = [
                taken for taken in self._taken.pop(owner, []) if taken.candidate.contestant.stack != stack
            ]
            self.fields.pop(owner, None)
            for taken in left:
                self._into(owner, taken)

    def _into(self, host: str, taken: _Taken) -> None:
        field = self.field(host)
        stack = taken.candidate.contestant.stack
        if all(other.contestant.stack != stack for other in field.grid):
            field.grid += self._of(stack)
        field.take(taken.candidate, taken.observed)
        self._taken.setdefault(host, []).append(taken)

    def _is_open(self, host: str) -> bool:
        return host not in self.fields or self.fields[host].is_open

    # --- taking loads in

    def note(self, host: str, candidate: Candidate, observed: Observation) -> None:
        """Keep a load that the race of a group has taken in already."""
        self._taken.setdefault(host, []).append(_Taken(candidate, observed))

    def take(self, host: str, candidate: Candidate, observed: Observation, *, final: bool) -> None:
        """Take a stored load in, in the order of the file."""
        if final:
            self.reach_final(host)
            if candidate in self.grid and candidate not in self.final.grid:
                self.final.grid.append(candidate)
            self.final.take(candidate, observed)
            return
        stack = candidate.contestant.stack
        if observed.ask.purpose is Purpose.ALONE and self._owners.get(stack) != host:
            self._give(stack, host)
        if self._owners.get(stack) == host:
            self._into(host, _Taken(candidate, observed))

    def reach_final(self, host: str) -> None:
        """Take note that a host measured for the final: where that was another, it begins anew."""
        if host != self.home:
            self.begin_final(host)

    # --- the end

    def result(self, out_of_time: bool) -> Tuned:
        """Return what came of it; `out_of_time`: no more could be measured."""
        found = self.final.result(out_of_time)
        groups = {
            host: field.result(out_of_time)
            for host, field in self.fields.items()
            if field.arms and host != self.home
        }
        known = {entry.candidate.label for entry in found.entries}
        unseen = [stack for stack in self.stacks if stack not in self._owners] if self.fields else []
        others = [
            _beaten(entry)
            for group in (
                *groups.values(),
                *(field.result() for field in self._others() if not field.arms),
            )
            for entry in group.entries
            if entry.candidate.label not in known
        ]
        late = [
            Entry(each, Fate.UNTRIED, UNSEEN_WHY, 0, None, None, None, None)
            for stack in unseen
            for each in self._of(stack)
        ]
        trials = self.final.trials + sum(field.trials for field in self._others())
        ending, because = found.ending, found.because
        if self.final.best is None and groups:
            ending, because = self._nobody(groups)
        elif ending is TuneEnding.SETTLED and (unseen or any(other.is_open for other in self._others())):
            ending = TuneEnding.SPENT
            because = f"after {trials} loads others may be as good (more time, --budget, may settle it)"
        rank = list(Fate)
        entries = [*found.entries, *others, *late]
        entries.sort(key=lambda entry: rank.index(entry.fate))
        looks = {stack: look for group in groups.values() for stack, look in group.looks.items()}
        return replace(
            found,
            ending=ending,
            because=because,
            entries=tuple(entries),
            looks={**looks, **found.looks},
            trials=trials,
            candidates=len(self.grid),
            hosts=self.shares(),
        )

    def _nobody(self, groups: dict[str, Tuned]) -> tuple[TuneEnding, str]:
        """Return why nobody won a final."""
        if any(field.leader is not None for field in self._others()):
            why = "there was no time to measure the best of each host on one of them (more: --budget)"
            return TuneEnding.CANNOT, why
        never = [group for group in groups.values() if group.ending is TuneEnding.NEVER]
        first = next(iter(never or groups.values()))
        return first.ending, first.because

    def shares(self) -> tuple[HostShare, ...]:
        """Return what each host did, that of the final first, and how it differs from that."""
        loads = {host: len(self._taken.get(host, ())) for host in self.fields}
        hosts = sorted(
            {*self.fields, *([self.home] if self.home else [])}, key=lambda one: (one != self.home, one)
        )
        return tuple(self._share(host, loads.get(host, 0)) for host in hosts)

    def _share(self, host: str, loads: int) -> HostShare:
        stacks = tuple(stack for stack in self.stacks if self._owners.get(stack) == host)
        home, beside = host == self.home, self._beside_home(host)
        return HostShare(host, stacks, self.final.trials if home else loads, home, beside, _differs(beside))

    def _beside_home(self, host: str) -> Interval | None:
        """Return how many times as much settings did on a host as in the final; None: nothing shows it.

        By the settings that were measured in both, and by what the looks at their stacks let expect, each weighed by
        how well it is known; with what they differ by beyond that.
        """
        if host == self.home or host not in self.fields:
            return None
        there = {arm.candidate.label: arm for arm in self.fields[host].arms}
        both = [(there[arm.candidate.label], arm) for arm in self.final.arms if arm.candidate.label in there]
        looks = {
            last.candidate.contestant.stack: math.log(first.forecast.rps / last.forecast.rps)
            for first, last in both
        }
        measured = [
            (math.log(first.mid / last.mid), _variance(first) + _variance(last))
            for first, last in both
            if _is_measured(first) and _is_measured(last)
        ]
        return _mean([*measured, *((ratio, 2 * LOOK_VARIES**2) for ratio in looks.values())])


def _mean(ratios: Sequence[tuple[float, float]]) -> Interval | None:
    """Return the mean of logarithms, each with its variance, and its interval; None: there is none."""
    if not ratios:
        return None
    weight = math.fsum(1 / variance for _, variance in ratios)
    mean = math.fsum(ratio / variance for ratio, variance in ratios) / weight
    count = len(ratios)
    between = math.fsum((ratio - mean) ** 2 for ratio, _ in ratios) / max(count - 1, 1) / count
    return of_logs(mean, NORMAL * math.sqrt(max(1 / weight, between)))


def _differs(beside: Interval | None) -> bool:
    return beside is not None and not (beside.low <= 1 + INDIFFERENT and beside.high >= 1 / (1 + INDIFFERENT))


def _is_measured(arm: Arm) -> bool:
    return arm.running and bool(arm.known.holds)


def _variance(arm: Arm) -> float:
    """Of the logarithm of what is known of an arm, by its interval."""
    found = arm.known.interval(REPORTED)
    return (math.log(found.high / found.low) / 2 / NORMAL) ** 2


def _beaten(entry: Entry) -> Entry:
    """Return what is reported of the best of a group that was not in the final."""
    return replace(entry, fate=Fate.EVEN) if entry.fate in (Fate.BEST, Fate.RUNNER_UP) else entry
