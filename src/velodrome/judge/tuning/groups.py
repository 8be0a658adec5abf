"""The race among settings over several hosts: each races some of them, and the best of all race on one host.

    groups = Groups(grid, wanted)
    groups.next_stack("a", present={"a", "b"})         # a host takes the next stack when it is free
    groups.take_over("a", present={"a", "b"})          # or, where none is left, half of what another has to race
    groups.reference("a")                              # the best of the others, which it measures, too
    groups.take("a", candidate, observed, final=False)
    groups.begin_final("a")                            # its group, and the best of each other group
    groups.confirms("b")                               # whether a host may confirm the finalists, too

What a host does to all settings alike cancels where they are compared on one host, so they are only ever compared on
one: each host measures the best of all others, too, and puts out what is no better than that there; the final goes on
with the group of its host. By how much hosts differ shows in the settings that two of them measured.

A setting that is beaten on one host is beaten: who beats it there is in the final, or was beaten in turn. So a host
that is done can take over settings of another at any time, and measures them anew, and nothing that a lost host has
decided is to be repeated.

Only the finalists are confirmed on several hosts at once: on those that are not seen to differ from the host of the
final. What is reported of the two is for starts on hosts like these, and its interval
has room for what hosts differ by (`knowing.Confirmed`).

Whatever is known is made of loads alone, as in `racing.py`: who races what is not stored, but given out anew, and the
final is on the host that raced for it last.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from velodrome.judge.statistics import of_logs
from velodrome.judge.tuning.forecasting import forecast
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

STARTS_VARY = 0.1
"""By what starts of one server differ at most, as a part."""
KNOWN = 2.0
"""Between the ends of the interval of a setting that says how hosts differ."""
NORMAL = 1.96
"""Standard deviations within which 95 % of a normal distribution lie."""
LEAST_LEFT = 2
"""So many settings that a host has still to race are shared with one that is done."""


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
        self._taken: dict[str, list[_Taken]] = {}
        self._racing: dict[str, str] = {}
        """By candidate of a stack that several hosts looked at, who races it; not there: all of them may."""

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
        """Return the candidates of the next stack that nobody looked at who is `present`; none: there is no such stack.

        Of a stack that only lost hosts looked at, some may be undecided.
        """
        for stack in self.stacks:
            own = self._of(stack)
            hosts = {other for other, field in self.fields.items() if stack in field.stacks}
            if hosts.isdisjoint(present) and (not hosts or not all(map(self._is_beaten, own))):
                return own
        return ()

    def take_over(self, host: str, present: Collection[str]) -> tuple[Candidate, ...]:
        """Give a host half of what another has still to race, of one stack, and return the candidates of that stack.

        None: no other that is `present` has enough left. From now on the other leaves what was given.
        """
        others = [other for other in sorted(present) if other != host and other in self.fields]
        left_to = {other: self._left_to(other) for other in others}
        other = max(others, key=lambda each: len(left_to[each]), default="")
        left = left_to.get(other, [])
        if len(left) < LEAST_LEFT:
            return ()
        by_stack: dict[str, list[Candidate]] = {}
        for candidate in left:
            by_stack.setdefault(candidate.contestant.stack, []).append(candidate)
        stack, most = max(by_stack.items(), key=lambda each: len(each[1]))
        # The other goes from the most promising to the least.
        given = most[-min(len(left) // 2, len(most)) :]
        self._racing |= {candidate.label: other for candidate in left}
        self._racing |= {candidate.label: host for candidate in given}
        return self._of(stack)

    def give_back(self, host: str) -> None:
        """Have others race what a host that was lost had still to race."""
        self._racing = {label: racing for label, racing in self._racing.items() if racing != host}

    def _left_to(self, host: str) -> list[Candidate]:
        """Return what a host has still to race, the most promising first."""
        field = self.fields[host]
        left = [
            arm
            for arm in field.arms
            if arm.candidate.label in field.undecided and field.contends(arm) and not arm.elsewhere
        ]
        return [arm.candidate for arm in sorted(left, key=lambda arm: -arm.upper)]

    def _is_beaten(self, candidate: Candidate, but: str = "") -> bool:
        """Whether the group of a host, but of one, has put a candidate out."""
        return any(_has_beaten(field, candidate) for host, field in self.fields.items() if host != but)

    def _leaves(self, host: str, candidate: Candidate) -> bool:
        """Whether a host leaves a candidate alone, because another races it or it is beaten."""
        return self._racing.get(candidate.label, host) != host or self._is_beaten(candidate)

    def field(self, host: str) -> Field:
        """Return what is known of the group of a host."""
        return self.fields.setdefault(host, Field((), self.wanted, partial(self._leaves, host)))

    def reference(self, host: str) -> tuple[Candidate, float] | None:
        """Return the best setting of other hosts that did more there than any on this host, and how much.

        None: there is none, or it was measured here.
        """
        here = self.field(host)
        leaders = [field.leader for other, field in sorted(self.fields.items()) if other != host]
        leading = [arm for arm in leaders if arm is not None and not arm.elsewhere and arm.trials > 1]
        best, own = max(leading, key=lambda arm: arm.mid, default=None), here.leader
        if best is None or _measured(here, best.candidate) is not None:
            return None
        if own is not None and best.mid <= own.mid * (1 + INDIFFERENT):
            return None
        return best.candidate, best.mid

    def begin_final(self, host: str) -> Field:
        """Go on with the group of a host, and with the best of each other group; with all where there are no groups.

        What the host has measured until now counts in the final, because it is of the same host.
        """
        self.home = host
        self._racing = {}
        own = [
            taken for taken in self._taken.get(host, []) if taken.observed.ask.purpose is not Purpose.CONFIRM
        ]
        stacks = self.fields[host].stacks if host in self.fields else []
        grid = [candidate for stack in stacks for candidate in self._of(stack)]
        beaten_elsewhere = partial(self._is_beaten, but=host)
        self.final = Field(grid if self.fields else self.grid, self.wanted, beaten_elsewhere)
        self.final.home = host
        for taken in own:
            self.final.take(taken.candidate, taken.observed)
        return self.final

    def next_finalist(self) -> tuple[Candidate, float] | None:
        """Return who may be the best of another group and was not measured on the host of the final, and what may be
        expected of it there; None: there is none."""
        leader = self.final.leader
        for field in self._others():
            for candidate in field.qualified if field.arms else ():
                arm = _measured(field, candidate)
                if arm is None or not arm.known.holds or _measured(self.final, candidate) is not None:
                    continue
                beside = _measured(field, leader.candidate) if leader is not None else None
                ratio = leader.mid / beside.mid if leader is not None and beside is not None else 1.0
                return candidate, arm.mid * ratio
        return None

    def confirms(self, host: str) -> bool:
        """Whether a host may confirm the finalists: the one of the final, and those that are not seen to differ."""
        return host == self.home or not _differs(self._beside_home(host))

    def next_home(self, prepared: Collection[str]) -> str:
        """Return the host where most of those are that may be the best: they are not measured again."""
        return max(
            sorted(prepared), key=lambda one: len(self.fields[one].qualified) if one in self.fields else 0
        )

    def _others(self) -> list[Field]:
        """Return the groups of hosts other than that of the final, in the order of their names."""
        return [field for _, field in self._others_by_host()]

    def _others_by_host(self) -> list[tuple[str, Field]]:
        return [(host, self.fields[host]) for host in sorted(self.fields) if host != self.home]

    def candidate_of(self, contestant: Contestant) -> Candidate:
        """Return a candidate of the grid, or a neighbour of one. Raises KeyError for none of these."""
        return Field(self.grid, self.wanted).candidate_of(contestant)

    def _of(self, stack: str) -> tuple[Candidate, ...]:
        return tuple(candidate for candidate in self.grid if candidate.contestant.stack == stack)

    # --- taking loads in

    def note(self, host: str, candidate: Candidate, observed: Observation) -> None:
        """Keep a load that the race of a group, or what confirms, has taken in already."""
        self._taken.setdefault(host, []).append(_Taken(candidate, observed))

    def take(self, host: str, candidate: Candidate, observed: Observation, *, final: bool) -> None:
        """Take a stored load in, in the order of the file."""
        if final:
            self.reach_final(host)
            self.final.take(candidate, observed)
            return
        if observed.ask.purpose is Purpose.CONFIRM:
            self.final.take(candidate, observed)
        else:
            field = self.field(host)
            if observed.ask.purpose is Purpose.ALONE:
                field.add(self._of(candidate.contestant.stack))
            field.take(candidate, observed)
        self.note(host, candidate, observed)

    def reach_final(self, host: str) -> None:
        """Take note that a host raced for the final: where that was another, it begins anew."""
        if host != self.home:
            self.begin_final(host)

    # --- the end

    def result(self, out_of_time: bool) -> Tuned:
        """Return what came of it; `out_of_time`: no more could be measured."""
        found = self.final.result(out_of_time)
        groups = {host: field.result(out_of_time) for host, field in self._others_by_host()}
        raced = [groups[host] for host in groups if self.fields[host].arms]
        trials = self.final.trials + sum(field.trials for field in self._others())
        ending, because = found.ending, found.because
        if self.final.best is None and raced:
            ending, because = self._nobody(raced)
        elif ending is TuneEnding.SETTLED and self._is_open:
            ending = TuneEnding.SPENT
            because = f"after {trials} loads others may be as good (more time, --budget, may settle it)"
        rank = list(Fate)
        entries = self._entries(found, groups) if self.fields else list(found.entries)
        entries.sort(key=lambda entry: rank.index(entry.fate))
        looks = {stack: look for group in raced for stack, look in group.looks.items()}
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

    @property
    def _is_open(self) -> bool:
        """Whether a stack was not looked at, or a setting may be the best that is not in the final."""
        if not self.fields:
            return False
        looked = {stack for field in self.fields.values() for stack in field.stacks}
        in_final = {arm.candidate.label for arm in self.final.arms if arm.trials}
        for field in self._others():
            in_final |= {candidate.label for candidate in field.qualified}
        left = (candidate for host, _ in self._others_by_host() for candidate in self._left_to(host))
        return not looked.issuperset(self.stacks) or any(each.label not in in_final for each in left)

    def _entries(self, final: Tuned, groups: Mapping[str, Tuned]) -> list[Entry]:
        """Return what is reported of each candidate: where the final did not measure it, of the host that did most."""
        found = {entry.candidate.label: self._with_arithmetic(entry) for entry in final.entries}
        of_final = {label for label, entry in found.items() if entry.trials}
        for host, group in groups.items():
            stacks = self.fields[host].stacks
            for entry in group.entries:
                label, known = entry.candidate.label, found.get(entry.candidate.label)
                more = known is None or (entry.trials > known.trials and label not in of_final)
                if more and entry.candidate.contestant.stack in stacks:
                    found[label] = _beaten(entry)
        for each in self.grid:
            late = Entry(each, Fate.UNTRIED, UNSEEN_WHY, 0, None, None, None, None)
            found.setdefault(each.label, late)
        return list(found.values())

    def _with_arithmetic(self, entry: Entry) -> Entry:
        """Return what is reported of a finalist with what arithmetic allows it where its stack was looked at."""
        stack = entry.candidate.contestant.stack
        looks = [field.looks[stack] for _, field in sorted(self.fields.items()) if stack in field.looks]
        if stack in self.final.looks or not looks:
            return entry
        return replace(entry, forecast=forecast(entry.candidate, looks[0], self.wanted.cpus))

    def _nobody(self, groups: Sequence[Tuned]) -> tuple[TuneEnding, str]:
        """Return why nobody won a final."""
        if any(field.leader is not None for field in self._others()):
            why = "there was no time to measure the best of each host on one of them (more: --budget)"
            return TuneEnding.CANNOT, why
        first = next((group for group in groups if group.ending is TuneEnding.NEVER), groups[0])
        return first.ending, first.because

    def shares(self) -> tuple[HostShare, ...]:
        """Return what each host did, that of the final first, and how it differs from that."""
        loads = {host: len(self._taken.get(host, ())) for host in self.fields}
        hosts = sorted(
            {*self.fields, *([self.home] if self.home else [])}, key=lambda one: (one != self.home, one)
        )
        return tuple(self._share(host, loads.get(host, 0)) for host in hosts)

    def _share(self, host: str, loads: int) -> HostShare:
        home, beside = host == self.home, self._beside_home(host)
        differs = host in self.final.apart or _differs(beside)
        stacks = tuple(self.fields[host].stacks) if host in self.fields else ()
        return HostShare(host, stacks, self.final.trials if home else loads, home, beside, differs)

    def _beside_home(self, host: str) -> Interval | None:
        """Return how many times as much settings did on a host as in the final; None: nothing shows it.

        By the starts that confirm, and by the other settings that were measured in both, each weighed by how well it
        is known; with what they differ by beyond that.
        """
        if host == self.home or host not in self.fields:
            return None
        there = self.fields[host]
        both = [
            (first, last)
            for last in self.final.arms
            if (first := _measured(there, last.candidate)) is not None
        ]
        measured = [
            (math.log(first.mid / last.mid), _variance(first) + _variance(last))
            for first, last in both
            if _is_measured(first) and _is_measured(last)
        ]
        more, starts = self.final.beside(host)
        # The rates of a start begin where the other host's ended, and are not followed all the way.
        off = more / 2 if host in self.final.apart else 0.0
        confirmed = [(more, 2 * STARTS_VARY**2 / starts + off**2)] if starts else []
        return _mean([*confirmed, *measured])


def _has_beaten(field: Field, candidate: Candidate) -> bool:
    """Whether a host that looked at the stack of a candidate has a better one, or cannot serve it."""
    if any(entry.candidate.label == candidate.label for entry in field.lost):
        return True
    arm = next((arm for arm in field.arms if arm.candidate.label == candidate.label), None)
    return arm is not None and not arm.elsewhere and arm.candidate.label not in field.undecided


def _measured(field: Field, candidate: Candidate) -> Arm | None:
    """Return what is known of a candidate of a field; None: it is none of it, or was not measured there."""
    return next((arm for arm in field.arms if arm.trials and arm.candidate.label == candidate.label), None)


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
    """Whether it is known within a factor of `KNOWN`."""
    found = arm.known.interval(REPORTED)
    return arm.running and bool(arm.known.holds) and found.high < KNOWN * found.low


def _variance(arm: Arm) -> float:
    """Of the logarithm of what is known of an arm, by its interval."""
    found = arm.known.interval(REPORTED)
    return (math.log(found.high / found.low) / 2 / NORMAL) ** 2


def _beaten(entry: Entry) -> Entry:
    """Return what is reported of the best of a group that was not in the final."""
    return replace(entry, fate=Fate.EVEN) if entry.fate in (Fate.BEST, Fate.RUNNER_UP) else entry
