"""Blocks of several hosts: compared within blocks, each whole on one of them; the host is a random effect."""

import importlib.util
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from tests.judge.made import MACHINE, STACKS, results, settled, steady

from velodrome.judge.field import hosts_of
from velodrome.judge.statistics import Comparison, Hosts, Sample, host_levels
from velodrome.judge.verdict import judge, same_hosts, untorn
from velodrome.model.errors import DifferentMachinesError
from velodrome.model.measurement import RanOn
from velodrome.model.results import Result, dump, load

FILE = Path(__file__).parents[2] / "benchmarks/intervals.py"


def _loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("intervals_of_hosts", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["intervals_of_hosts"] = module
    spec.loader.exec_module(module)
    return module


def on(found: Sequence[Result], names: str, **facts: str) -> list[Result]:
    """Give each block its host: `aab` is two blocks on a, one on b."""
    return [
        replace(result, machine=RanOn(names[result.trial.block], {**MACHINE, **facts, "seen": names}))
        for result in found
    ]


def sample(label: str, values: Sequence[float], names: str, *, alike: bool = True) -> Sample:
    return Sample(label, dict(enumerate(values)), hosts=Hosts(dict(enumerate(names)), alike))


@pytest.mark.simulation
@pytest.mark.parametrize("what", ["equal", "of one kind, 1 % and 5 %", "of two kinds, 10 % and 30 %"])
@pytest.mark.parametrize("hosts", [2, 4])
def test_intervals_over_hosts_hold_the_truth_as_often_as_they_say(what: str, hosts: int) -> None:
    intervals = _loaded()
    ratio, level, alike = intervals.SEVERAL[what]
    several = intervals.Several(hosts, 3, level, ratio, alike)
    worlds = 300
    least = 0.95 - 3 * (0.95 * 0.05 / worlds) ** 0.5
    assert min(intervals.hosts_hold(several, 2, worlds)) >= least


def test_what_a_host_does_to_all_contestants_leaves_their_ratio_as_it_is() -> None:
    a, b = [100.0, 101, 99, 100], [50.0, 50.5, 49.5, 50]
    slower = [1.0, 1.0, 0.7, 0.7]
    here = Comparison([sample("a", a, "xxxx"), sample("b", b, "xxxx")])
    there = Comparison(
        [
            sample("a", [v * s for v, s in zip(a, slower, strict=True)], "xxyy"),
            sample("b", [v * s for v, s in zip(b, slower, strict=True)], "xxyy"),
        ]
    )
    pair, other = here.pair("a", "b"), there.pair("a", "b")
    assert pair is not None
    assert other is not None
    assert other.ratio.mid == pytest.approx(pair.ratio.mid)
    assert settled(other)
    assert math.log(other.ratio.high / other.ratio.low) < 1.6 * math.log(pair.ratio.high / pair.ratio.low)
    # A level is of a host that is drawn as well.
    assert there.alone("a").high / there.alone("a").low > 2 * here.alone("a").high / here.alone("a").low


def test_contestants_that_hosts_rank_otherwise_have_a_wide_interval_that_blocks_do_not_narrow() -> None:
    names = "xyxyxyxy"
    a = [130.0 if host == "x" else 90.0 for host in names]
    pair = Comparison([sample("a", a, names), sample("b", [100.0] * 8, names)]).pair("a", "b")
    assert pair is not None
    assert not settled(pair)
    comparison = Comparison([sample("a", a, names), sample("b", [100.0] * 8, names)])
    assert comparison.half_width(pair, 1000) > 0.9 * comparison.half_width(pair, 8)


def test_hosts_of_one_kind_are_trusted_more_than_those_of_two() -> None:
    a, b, names = [100.0, 103, 98, 101], [90.0, 92, 91, 89], "xxyy"
    widths = []
    for alike in (True, False):
        pair = Comparison([sample("a", a, names, alike=alike), sample("b", b, names, alike=alike)]).pair(
            "a", "b"
        )
        assert pair is not None
        widths.append(pair.ratio.high / pair.ratio.low)
    assert widths[0] < widths[1]


def test_hosts_that_differ_beyond_chance_are_named_with_their_ratio() -> None:
    names = "xxxyyy"
    values = [100.0, 101, 99, 132, 131, 133]
    found = host_levels([sample("a", values, names), sample("b", [value / 2 for value in values], names)])
    ((host, over, ratio),) = found
    assert (host, over) == ("y", "x")
    assert ratio.low < 1.32 < ratio.high
    assert host_levels([sample("a", [100.0, 104, 97, 101, 99, 103], names)]) == []
    assert host_levels([sample("a", [100.0, 200], "xx")]) == []


def test_a_verdict_on_blocks_of_two_hosts_says_which_ran_how_many_and_how_they_differ() -> None:
    fast, slow = steady("granian", [1000, 1010, 700, 690]), steady("uvicorn", [500, 505, 350, 345])
    found = judge([results(on([*fast, *slow], "aabb"))], STACKS)
    assert found.answers[0].best == ("granian",)
    notes = " ".join(found.notes)
    assert "2 hosts: a (2) and b (2)" in notes
    assert "b did 0.69" in notes


def test_of_a_block_that_was_begun_on_a_host_that_was_lost_only_what_was_run_anew_counts() -> None:
    begun = on(steady("granian", [9000]), "a")
    anew = on(steady("uvicorn", [500]), "b")
    kept, notes = untorn([*begun, *anew])
    assert [result.machine.name for result in kept if result.machine] == ["b"]
    assert "Block 1" in notes[0]
    found = judge([results([*begun, *anew])], STACKS)
    assert [row.contestant for row in found.answers[0].standings] == ["uvicorn"]


def test_files_of_different_machines_add_up_as_blocks_of_several_hosts() -> None:
    both = [*steady("granian", [1000] * 3), *steady("uvicorn", [500] * 3)]
    there = results(both, machine={**MACHINE, "cpu": "another", "cpus": 4})
    found = judge([results(both), there], STACKS)
    assert [row.blocks_valid for row in found.answers[0].standings] == [6, 6]
    assert "machine 1 (3) and machine 2 (3)" in " ".join(found.notes)


def test_machines_of_two_kinds_that_call_themselves_the_same_are_two_hosts() -> None:
    both = [*steady("granian", [1000] * 2), *steady("uvicorn", [500] * 2)]
    found = judge([results(on(both, "vv")), results(on(both, "vv", cpu="another"))], STACKS)
    assert "v (2) and v (2) (2)" in " ".join(found.notes)


def test_contestants_that_never_shared_a_host_are_not_compared() -> None:
    here, there = (
        results(steady("granian", [2000] * 3)),
        results(steady("uvicorn", [500] * 3), machine={**MACHINE, "cpus": 4}),
    )
    found = judge([here, there], STACKS)
    assert found.answers[0].best != ("granian",)


def test_a_diff_of_a_run_on_several_hosts_is_refused() -> None:
    run = results(on(steady("granian", [1000] * 2), "ab"))
    with pytest.raises(DifferentMachinesError, match="a and b"):
        same_hosts(run)
    same_hosts(results(on(steady("granian", [1000] * 2), "aa")))


def test_hosts_are_of_one_kind_if_what_must_agree_between_runs_does() -> None:
    trials = steady("granian", [1000] * 2)
    alike = hosts_of(on(trials, "ab"))
    assert alike is not None
    assert alike.alike
    apart = hosts_of([*on(trials[:1], "ab"), *on(trials[1:], "ab", cpu="another")])
    assert apart is not None
    assert not apart.alike
    assert hosts_of(on(trials, "aa")) is None


def test_the_host_of_a_trial_is_stored_with_it() -> None:
    run = results(on(steady("granian", [1000]), "a"))
    read = load(dump(run.trials[0]), run.header.study)
    assert read == run.trials[0]
