"""The race among settings over simulated hosts: nothing is compared across them, so a slower one deceives nobody."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

import pytest
from tests.judge.tuning.servers import APPS, CPUS, App, Servers, candidates, regret

from velodrome.judge.tuning.groups import Groups
from velodrome.judge.tuning.racing import Loads, confirming, qualifying, race, tune
from velodrome.model.measurement import Purpose
from velodrome.model.tuning import Ask, Candidate, Fate, Goal, Observation, TuneEnding, Wanted

pytestmark = pytest.mark.simulation

GRID = candidates()
MOST = round(0.2 * 15 * len(GRID))
CAPACITY = Wanted(Goal.CAPACITY, CPUS, most=MOST)


@dataclass
class Host(Servers):
    """Servers on a host of another speed."""

    speed: float = 1.0

    def cost_us(self, candidate: Candidate) -> float:
        return super().cost_us(candidate) / self.speed


@dataclass
class Hosts:
    """Several, which measure the same settings at the same time."""

    app: App
    seed: int
    speeds: dict[str, float]
    lost_at: tuple[str, int] = ("", 0)
    """A host, and after how many loads of all it is lost."""
    groups: Groups = field(default_factory=lambda: Groups(GRID, CAPACITY))
    stored: list[tuple[str, Candidate, Observation, bool]] = field(default_factory=list)
    took_s: float = 0.0
    """All of it."""
    raced_s: float = 0.0
    """Of that, until the finalists were known."""

    def __post_init__(self) -> None:
        self.hosts = {
            name: Host(self.app, 100 * self.seed + number, speed=speed)
            for number, (name, speed) in enumerate(self.speeds.items())
        }
        first = next(iter(self.hosts.values()))
        for other in self.hosts.values():  # the same settings everywhere
            other._traits, other.own = first._traits, first.own

    def run(self) -> "Hosts":
        present = {*self.hosts}

        def qualify(host: str) -> Loads:
            return qualifying(
                self.groups.field(host),
                lambda: self.groups.raced < MOST,
                lambda: True,
                more=lambda: self.groups.next_stack(host, present),
                refer=lambda: self.groups.reference(host),
                take_over=lambda: self.groups.take_over(host, present),
            )

        self._at_once(qualify, present)
        home = self.groups.next_home(present)
        final = self.groups.begin_final(home)

        def measure(candidate: Candidate, load: Ask) -> Observation:
            self.took_s += takes_s(load)
            return self._measure(home, candidate, load, final=True)

        race(measure, final, refer=self.groups.next_finalist)
        self.raced_s = self.took_s
        self._at_once(
            lambda host: confirming(final, host=host),
            {host for host in present if self.groups.confirms(host)},
        )
        return self

    def _at_once(self, run: Callable[[str], Loads], present: set[str]) -> None:
        """Have hosts make loads at the same time, and begin again whoever is done when another is."""
        runs: dict[str, Loads] = {}
        waiting: list[tuple[float, str, Candidate, Ask]] = []

        def go_on(host: str, at_s: float, observed: Observation | None) -> None:
            try:
                candidate, load = next(runs[host]) if observed is None else runs[host].send(observed)
            except StopIteration:
                del runs[host]
                return
            heapq.heappush(waiting, (at_s + takes_s(load), host, candidate, load))

        def begin(at_s: float) -> None:
            for host in sorted(present - {*runs}):
                runs[host] = run(host)
                go_on(host, at_s, None)

        begin(self.took_s)
        while waiting:
            at_s, host, candidate, load = heapq.heappop(waiting)
            if host == self.lost_at[0] and len(self.stored) >= self.lost_at[1]:
                present.discard(host)
                self.groups.give_back(host)
                runs.pop(host).close()
            else:
                self.took_s = at_s
                go_on(host, at_s, self._measure(host, candidate, load, final=host == self.groups.home))
            begin(at_s)

    def confirmed(self) -> list[tuple[str, str]]:
        """Return the host and the candidate of each start that confirms."""
        return [
            (host, candidate.label)
            for host, candidate, seen, _ in self.stored
            if seen.ask.purpose is Purpose.CONFIRM and seen.ask.fresh
        ]

    def _measure(self, host: str, candidate: Candidate, load: Ask, *, final: bool) -> Observation:
        observed = self.hosts[host](candidate, load)
        observed = replace(observed, host=host, boot=1000 * sorted(self.hosts).index(host) + observed.boot)
        self.stored.append((host, candidate, observed, final))
        if not final:
            self.groups.note(host, candidate, observed)
        return observed


def takes_s(load: Ask) -> float:
    """Return how long a load takes with what is around it."""
    return load.seconds + (4.0 if load.fresh else 1.0)


@pytest.mark.parametrize("speeds", [(1.0, 1.0), (1.0, 0.5), (0.5, 1.0, 1.0)], ids=str)
def test_the_best_is_found_nearly_whatever_the_hosts_are_like(speeds: Sequence[float]) -> None:
    regrets, settled = [], 0
    for seed, app in enumerate(APPS):
        hosts = Hosts(app, seed, dict(zip("abc", speeds, strict=False))).run()
        found = hosts.groups.result(out_of_time=False)
        assert found.best is not None
        home = hosts.hosts[hosts.groups.home]
        regrets.append(regret(home, GRID, found.best.candidate))
        settled += found.ending is TuneEnding.SETTLED
        assert {entry.candidate.label for entry in found.entries} >= {candidate.label for candidate in GRID}
        assert [entry.fate for entry in found.entries].count(Fate.BEST) == 1
        looked = [
            (host, candidate.contestant.stack)
            for host, candidate, observed, final in hosts.stored
            if not final and observed.ask.purpose is Purpose.ALONE
        ]
        assert len({*looked}) == len(looked), "a host looks at a stack once"
        assert {stack for _, stack in looked} == {candidate.contestant.stack for candidate in GRID}
        raced = [seen.ask.purpose is not Purpose.CONFIRM for _, _, seen, _ in hosts.stored]
        assert len({host for host, _, _, final in hosts.stored if final}) == 1, raced
    assert sum(share > 0.08 for share in regrets) <= 1, regrets
    assert settled >= 0.6 * len(APPS)


def test_what_is_stored_comes_to_the_same() -> None:
    hosts = Hosts(APPS[1], 4, {"a": 1.0, "b": 0.7}).run()
    again = Groups(GRID, CAPACITY)
    for host, candidate, observed, final in hosts.stored:
        again.take(host, candidate, observed, final=final)
    assert again.result(out_of_time=False) == hosts.groups.result(out_of_time=False)


def test_a_host_of_half_the_speed_is_told_apart_and_equal_ones_are_not() -> None:
    within = 0
    for seed in range(5):
        hosts = Hosts(APPS[0], seed, {"a": 1.0, "b": 0.5}).run()
        home, other = hosts.groups.shares()
        assert home.beside_final is None
        assert other.beside_final is not None
        assert other.differs
        ratio = hosts.speeds[other.host] / hosts.speeds[home.host]
        within += other.beside_final.low <= ratio <= other.beside_final.high
    assert within >= 4
    same = [Hosts(APPS[0], seed, {"a": 1.0, "b": 1.0}).run().groups.shares()[1] for seed in range(5)]
    assert sum(share.differs for share in same) <= 1
    assert all(share.stacks and share.loads for share in same)


def test_hosts_that_are_alike_share_the_starts_that_confirm_and_one_of_half_the_speed_is_set_apart() -> None:
    for seed in range(3):
        alike = Hosts(APPS[4], seed, {"a": 1.0, "b": 1.0}).run()
        starts = alike.confirmed()
        assert {host for host, _ in starts} == {"a", "b"}
        assert abs(sum(host == "a" for host, _ in starts) - len(starts) / 2) <= 1
        assert len({(host, label) for host, label in starts}) == 4  # each finalist on each host
        unequal = Hosts(APPS[4], seed, {"a": 1.0, "b": 0.5}).run()
        slow = "b" if unequal.groups.home == "a" else "a"
        assert sum(host == slow for host, _ in unequal.confirmed()) <= 2
        best = unequal.groups.result(out_of_time=False).best
        assert best is not None
        assert best.value is not None
        truth = unequal.hosts[unequal.groups.home].capacity(best.candidate)
        assert best.value.low < 1.1 * truth
        assert best.value.high > 0.9 * truth


def test_a_host_that_is_done_takes_settings_over_from_another_and_all_end_at_nearly_the_same_time() -> None:
    hosts = Hosts(APPS[0], 3, {"a": 1.0, "b": 1.0}).run()
    busy, looked = dict.fromkeys("ab", 0.0), dict.fromkeys("ab", 0)
    for host, _, seen, final in hosts.stored:
        if not final and seen.ask.purpose is not Purpose.CONFIRM:
            busy[host] += takes_s(seen.ask)
            looked[host] += seen.ask.purpose is Purpose.ALONE
    assert max(busy.values()) < 1.2 * min(busy.values()), busy
    assert sum(looked.values()) > len({candidate.contestant.stack for candidate in GRID})


def test_what_a_host_took_over_is_left_to_it_until_it_is_lost() -> None:
    groups = Groups(GRID, CAPACITY)
    servers = Servers(APPS[0], 1)
    stack = groups.next_stack("a", {"a", "b"})
    field = groups.field("a")
    field.add(stack)
    while (step := field.next_look(stack[0].contestant.stack)) is not None:
        groups.take("a", step[0], servers(*step), final=False)
    assert groups.take_over("b", {"a", "b"}) == stack

    def left_by(host: str) -> set[str]:
        return {candidate.label for candidate in stack if groups.field(host).leaves(candidate)}

    given = left_by("a")
    assert given
    assert given.isdisjoint(left_by("b"))
    assert not groups.take_over("a", {"a", "b"}), "b has looked at nothing yet"
    groups.give_back("b")
    assert not left_by("a")


def test_every_host_measures_the_best_of_all_and_its_own_have_to_beat_that() -> None:
    hosts = Hosts(APPS[1], 0, {"a": 1.0, "b": 1.0}).run()
    owners = {stack: share.host for share in hosts.groups.shares() for stack in share.stacks}
    raced = [
        (host, candidate, seen)
        for host, candidate, seen, final in hosts.stored
        if seen.ask.purpose is Purpose.RATE and not final
    ]
    referred = [candidate for host, candidate, _ in raced if owners[candidate.contestant.stack] != host]
    assert referred
    leaders = {
        host: arm.candidate.label for host, field in hosts.groups.fields.items() if (arm := field.leader)
    }
    assert len({*leaders.values()}) == 1, leaders


@pytest.mark.parametrize("after", [3, 12, 30])
def test_what_a_lost_host_had_not_decided_is_raced_by_the_others(after: int) -> None:
    hosts = Hosts(APPS[2], 1, {"a": 1.0, "b": 1.0}, lost_at=("b", after)).run()
    found = hosts.groups.result(out_of_time=False)
    assert hosts.groups.home == "a"  # who is left
    assert found.best is not None
    assert regret(hosts.hosts["a"], GRID, found.best.candidate) < 0.15
    owned = {stack for share in hosts.groups.shares() for stack in share.stacks}
    assert owned == {candidate.contestant.stack for candidate in GRID}
    again = Groups(GRID, CAPACITY)
    for host, candidate, observed, final in hosts.stored:
        again.take(host, candidate, observed, final=final)
    assert again.result(out_of_time=False) == found


@pytest.mark.exhaustive
def test_four_hosts_need_less_time_than_one_and_choose_as_well(
    record_property: Callable[[str, object], None],
) -> None:
    took: dict[int, list[float]] = {}
    for many in (1, 2, 4):
        home: Servers
        took[many], regrets, raced = [], [], []
        for app in APPS:
            for seed in range(8):
                if many == 1:
                    home = Servers(app, 100 * seed)
                    best = tune(home, GRID, CAPACITY).best
                    loads = [load for _, load in home.loads]
                    took[many].append(sum(map(takes_s, loads)))
                    raced.append(sum(takes_s(load) for load in loads if load.purpose is not Purpose.CONFIRM))
                else:
                    hosts = Hosts(app, seed, dict.fromkeys("abcd"[:many], 1.0)).run()
                    home, best = hosts.hosts[hosts.groups.home], hosts.groups.result(out_of_time=False).best
                    took[many].append(hosts.took_s)
                    raced.append(hosts.raced_s)
                assert best is not None
                regrets.append(regret(home, GRID, best.candidate))
        bad = sum(share > 0.08 for share in regrets)
        found = [round(median(raced)), round(median(took[many])), bad, len(regrets)]
        record_property(f"{many} hosts", found)
        print(many, found)
        assert bad <= 4, regrets
    assert median(took[2]) < 0.75 * median(took[1])
    assert median(took[4]) < 0.5 * median(took[1])
