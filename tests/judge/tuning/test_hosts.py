"""One race over simulated hosts: those that are alike make its loads together, and others deceive nobody."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median

import pytest
from tests.judge.tuning.servers import APPS, CPUS, App, Servers, candidates, regret, takes_s, tune

from velodrome.judge.tuning.hosts import SharedRace
from velodrome.judge.tuning.racing import Loads, confirming, racing
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
    """Several, which make the loads of one race at the same time."""

    app: App
    seed: int
    speeds: dict[str, float]
    lost_at: tuple[str, int] = ("", 0)
    """A host, and after how many loads of all it is lost."""
    broken: str = ""
    """A host where no server starts."""
    restless: str = ""
    """A host where nearly all loads are spoilt."""
    shared: SharedRace = field(default_factory=lambda: SharedRace(GRID, CAPACITY))
    stored: list[tuple[Candidate, Observation]] = field(default_factory=list)
    took_s: float = 0.0
    """All of it."""
    raced_s: float = 0.0
    """Of that, until the finalists were known for the first time."""

    def __post_init__(self) -> None:
        self.hosts = {
            name: Host(self.app, 100 * self.seed + number, speed=speed)
            for number, (name, speed) in enumerate(self.speeds.items())
        }
        first = next(iter(self.hosts.values()))
        for other in self.hosts.values():  # the same settings everywhere
            other._traits, other.own = first._traits, first.own

    def run(self) -> "Hosts":
        present, known = {*self.hosts}, None
        self.shared.claim_at(min(present))
        while known is not self.shared.field:
            known = self.shared.field
            self._at_once(lambda host: racing(self.shared.share(host)), present)
            self.raced_s = self.raced_s or self.took_s
            self._at_once(lambda host: confirming(self.shared.share(host)), present)
        if self.shared.home not in present:
            self.shared.claim_at(self.shared.busiest(sorted(present)))
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
                runs.pop(host).close()
            else:
                self.took_s = at_s
                go_on(host, at_s, self._measure(host, candidate, load))
            begin(at_s)

    def of(self, purpose: Purpose) -> list[tuple[str, Candidate, Observation]]:
        """Return the loads of a purpose, each with its host."""
        return [
            (seen.host, candidate, seen) for candidate, seen in self.stored if seen.ask.purpose is purpose
        ]

    def chosen(self) -> tuple[Candidate, float]:
        """Return what is recommended, and by what part there is something better where it is claimed."""
        best = self.shared.result(out_of_time=False).best
        assert best is not None
        return best.candidate, regret(self.hosts[self.shared.home], GRID, best.candidate)

    def _measure(self, host: str, candidate: Candidate, load: Ask) -> Observation:
        observed = self.hosts[host](candidate, load)
        if host == self.broken:
            observed = Observation(load, failed="it ended with exit code 1")
        if host == self.restless and len(self.stored) % 8:
            observed = replace(observed, held=None, spoilt="other programs used 48 % of its CPU")
        observed = replace(observed, host=host, boot=1000 * sorted(self.hosts).index(host) + observed.boot)
        self.stored.append((candidate, observed))
        return observed


@pytest.mark.parametrize("speeds", [(1.0, 1.0), (1.0, 0.5), (0.5, 1.0, 1.0)], ids=str)
def test_the_best_is_found_nearly_whatever_the_hosts_are_like(speeds: Sequence[float]) -> None:
    regrets, settled = [], 0
    for seed, app in enumerate(APPS):
        hosts = Hosts(app, seed, dict(zip("abc", speeds, strict=False))).run()
        found = hosts.shared.result(out_of_time=False)
        regrets.append(hosts.chosen()[1])
        settled += found.ending is TuneEnding.SETTLED
        assert {entry.candidate.label for entry in found.entries} >= {candidate.label for candidate in GRID}
        assert [entry.fate for entry in found.entries].count(Fate.BEST) == 1
        assert found.trials == len(hosts.stored) == sum(share.loads for share in found.hosts)
        assert hosts.shared.apart == {host for host in "abc" if hosts.speeds.get(host) == 0.5}
    assert sum(share > 0.08 for share in regrets) <= 1, regrets
    assert settled >= 0.6 * len(APPS)


@pytest.mark.parametrize("speed", [1.0, 0.7, 0.5])
def test_what_is_stored_comes_to_the_same(speed: float) -> None:
    hosts = Hosts(APPS[1], 4, {"a": 1.0, "b": speed}).run()
    again = SharedRace(GRID, CAPACITY)
    again.claim_at("a")
    for candidate, observed in hosts.stored:
        again.take(candidate, observed)
    assert again.result(out_of_time=False) == hosts.shared.result(out_of_time=False)


def test_every_host_begins_with_a_look_at_the_same_stack_and_of_the_others_one_host_each() -> None:
    hosts = Hosts(APPS[0], 3, dict.fromkeys("abc", 1.0)).run()
    looked: dict[str, list[str]] = {}
    for host, candidate, _ in hosts.of(Purpose.ALONE):
        looked.setdefault(candidate.contestant.stack, []).append(host)
    first, *others = looked.values()
    assert sorted(first) == ["a", "b", "c"]
    assert all(len(each) == 1 for each in others)
    assert {*looked} == {candidate.contestant.stack for candidate in GRID}


def test_a_host_of_half_the_speed_is_told_apart_by_its_first_look_and_equal_ones_are_not() -> None:
    within = 0
    for seed in range(5):
        hosts = Hosts(APPS[0], seed, {"a": 1.0, "b": 0.5}).run()
        home, other = hosts.shared.shares()
        assert (home.host, home.beside_final, home.final) == ("a", None, True)
        assert other.beside_final is not None
        assert other.differs
        assert other.loads <= 4
        within += other.beside_final.low <= 0.5 <= other.beside_final.high
    assert within >= 4
    same = [Hosts(APPS[0], seed, {"a": 1.0, "b": 1.0}).run().shared for seed in range(5)]
    assert not any(shared.apart for shared in same)
    assert sum(shared.shares()[1].differs for shared in same) <= 1
    assert all(share.stacks and share.loads for shared in same for share in shared.shares())


def test_of_four_hosts_the_one_that_differs_is_set_apart_also_where_the_claim_was_to_be_measured_there() -> (
    None
):
    hosts = Hosts(APPS[3], 2, {"a": 0.5, "b": 1.0, "c": 1.0, "d": 1.0}).run()
    assert hosts.shared.apart == {"a"}
    assert hosts.shared.home in {"b", "c", "d"}
    counted = sum(seen.host != "a" for _, seen in hosts.stored)
    assert hosts.shared.field.trials == counted < len(hosts.stored)


@pytest.mark.parametrize("broken", ["a", "b"])
def test_a_host_on_which_a_stack_fails_that_another_serves_puts_no_setting_out(broken: str) -> None:
    hosts = Hosts(APPS[1], 0, {"a": 1.0, "b": 1.0}, broken=broken).run()
    assert hosts.shared.apart == {broken}
    assert hosts.shared.home != broken
    assert not any(arm.out is Fate.FAILED for arm in hosts.shared.field.arms)
    assert not hosts.shared.field.lost
    assert hosts.chosen()[1] < 0.15


@pytest.mark.parametrize("restless", ["a", "b"])
def test_a_host_where_most_loads_are_spoilt_is_set_apart_and_puts_no_setting_out(restless: str) -> None:
    hosts = Hosts(APPS[1], 0, {"a": 1.0, "b": 1.0}, restless=restless).run()
    assert hosts.shared.apart == {restless}
    assert hosts.shared.home != restless
    assert not any(arm.spoilt for arm in hosts.shared.field.arms)
    assert hosts.chosen()[1] < 0.15


def test_where_all_hosts_are_restless_none_is_set_apart() -> None:
    shared = SharedRace(GRID, CAPACITY)
    ask, candidate = Ask(1.0, connections=1, purpose=Purpose.ALONE), GRID[0]
    for number in range(40):
        host = "ab"[number % 2]
        shared.take(candidate, Observation(ask, spoilt="other programs", host=host, boot=number))
    assert not shared.apart


def test_a_host_that_differs_by_a_fifth_is_told_apart_and_what_it_had_decided_is_judged_anew() -> None:
    regrets, apart = [], 0
    for seed, app in enumerate(APPS):
        hosts = Hosts(app, seed, {"a": 1.0, "b": 0.8}).run()
        apart += hosts.shared.apart == {"b"}
        regrets.append(hosts.chosen()[1])
    assert apart >= len(APPS) - 2
    assert fmean(regrets) < 0.06, regrets


def test_hosts_that_are_alike_share_the_loads_and_the_starts_that_confirm() -> None:
    for seed in range(3):
        hosts = Hosts(APPS[4], seed, {"a": 1.0, "b": 1.0}).run()
        first, second = (share.loads for share in hosts.shared.shares())
        assert abs(first - second) <= 0.25 * (first + second)
        starts = [
            (host, candidate.label) for host, candidate, seen in hosts.of(Purpose.CONFIRM) if seen.ask.fresh
        ]
        assert abs(sum(host == "a" for host, _ in starts) - len(starts) / 2) <= 1
        assert len({*starts}) == 4  # each finalist on each host


@pytest.mark.parametrize(("lost", "after"), [("b", 3), ("b", 12), ("b", 30), ("a", 3), ("a", 30)])
def test_the_loads_of_a_lost_host_count_and_another_does_what_it_had_still_to_do(
    lost: str, after: int
) -> None:
    hosts = Hosts(APPS[2], 1, {"a": 1.0, "b": 1.0}, lost_at=(lost, after)).run()
    found = hosts.shared.result(out_of_time=False)
    assert {hosts.shared.home, lost} == {"a", "b"}  # who is left
    assert hosts.chosen()[1] < 0.15
    assert {*found.looks} == {candidate.contestant.stack for candidate in GRID}
    assert hosts.shared.field.trials == len(hosts.stored)


def test_what_only_a_host_that_differs_has_looked_at_is_looked_at_anew() -> None:
    shared, servers = SharedRace(GRID, CAPACITY), Servers(APPS[0], 1)
    first, second = shared.field.stacks[:2]
    slow = Host(APPS[0], 2, speed=0.4)

    def look(host: str, stack: str, on: Servers, boot: int) -> None:
        while (step := shared.field.next_look(stack, host)) is not None and host not in shared.apart:
            shared.take(step[0], replace(on(*step), host=host, boot=boot))

    shared.claim_at("a")
    look("b", second, slow, 2)
    assert second in shared.field.looks
    ask = Ask(1.0, rate=50.0, fresh=True)
    measured = next(arm.candidate for arm in shared.field.arms)
    shared.take(measured, replace(servers(measured, ask), host="a", boot=1))
    look("a", first, servers, 3)
    look("b", first, slow, 4)
    assert shared.apart == {"b"}
    assert second in shared.field.unseen
    look("a", second, servers, 5)
    (arm,) = [arm for arm in shared.field.arms if arm.trials]
    assert arm.candidate == measured


@pytest.mark.exhaustive
def test_four_hosts_need_less_time_than_one_and_choose_as_well(
    record_property: Callable[[str, object], None],
) -> None:
    took: dict[int, list[float]] = {}
    for many in (1, 2, 4):
        took[many], regrets, raced = [], [], []
        for app in APPS:
            for seed in range(8):
                if many == 1:
                    home = Servers(app, 100 * seed)
                    best = tune(home, GRID, CAPACITY).best
                    assert best is not None
                    loads = [load for _, load in home.loads]
                    took[many].append(sum(map(takes_s, loads)))
                    raced.append(sum(takes_s(load) for load in loads if load.purpose is not Purpose.CONFIRM))
                    regrets.append(regret(home, GRID, best.candidate))
                else:
                    hosts = Hosts(app, seed, dict.fromkeys("abcd"[:many], 1.0)).run()
                    assert not hosts.shared.apart
                    took[many].append(hosts.took_s)
                    raced.append(hosts.raced_s)
                    regrets.append(hosts.chosen()[1])
        bad = sum(share > 0.08 for share in regrets)
        found = [round(median(raced)), round(median(took[many])), round(fmean(regrets), 4), bad, len(regrets)]
        record_property(f"{many} hosts", found)
        print(many, found)
        assert bad <= 4, regrets
    assert median(took[2]) < 0.6 * median(took[1])
    assert median(took[4]) < 0.4 * median(took[1])
