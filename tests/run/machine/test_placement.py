"""Who runs where, for every number of CPUs, and what is shared is reported."""

import os
from pathlib import Path
from typing import Literal

import pytest

from velodrome.model.errors import LimitError
from velodrome.model.load import Limits
from velodrome.run.machine.facts import cores, place, quota_cpus, usable_cpus


@pytest.mark.parametrize(
    ("cpus", "server", "load", "upstream"),
    [
        ((0,), (0,), (0,), (0,)),
        ((0, 1), (0,), (1,), (1,)),
        ((5, 3), (3,), (5,), (5,)),
        ((0, 1, 2), (0,), (1,), (2,)),
        ((0, 1, 2, 3), (0, 1), (2,), (3,)),
        (tuple(range(8)), (0, 1, 2, 3, 4), (5, 6), (7,)),
    ],
)
def test_parties_are_apart_where_there_are_enough_cpus(
    cpus: tuple[int, ...], server: tuple[int, ...], load: tuple[int, ...], upstream: tuple[int, ...]
) -> None:
    placed = place(cpus)
    assert (placed.server_cpus, placed.load_cpus, placed.upstream_cpus) == (server, load, upstream)
    assert placed.shared == (len(cpus) == 1)


def test_one_cpu_is_shared_and_reported() -> None:
    assert place((0,)).notes == (
        "server and generator share CPU 0: each takes time from the other",
        "generator and third party share a CPU",
    )


@pytest.mark.parametrize("cpus", [2, "all"])
def test_a_server_given_all_cpus_shares_the_generators_and_it_is_reported(cpus: int | Literal["all"]) -> None:
    placed = place((0, 1), Limits(cpus))
    assert placed.server_cpus == (0, 1)
    assert placed.load_cpus == (1,)
    assert placed.shared
    assert placed.notes[0] == "server and generator share CPU 1: each takes time from the other"


def test_a_server_given_few_of_many_leaves_the_rest_alone() -> None:
    placed = place(tuple(range(8)), Limits(cpus=2))
    assert placed.server_cpus == (0, 1)
    assert not placed.shared


@pytest.mark.parametrize("cpus", [0, -1])
def test_no_cpus_is_an_error_with_a_cure(cpus: int) -> None:
    with pytest.raises(LimitError, match=r"cpus = -?\d .*velodrome may use 2 \(0, 7\)"):
        place((7, 0), Limits(cpus=cpus))


def test_where_an_answer_is_for_more_cpus_than_there_are_the_server_has_all() -> None:
    placed = place((7, 0), Limits(cpus=16))
    assert placed.server_cpus == (0, 7)
    assert placed.load_cpus == (7,)
    assert placed.notes[0] == "the answer is for 16 CPUs, and the server has all 2 there are here"


@pytest.mark.parametrize(
    ("limits", "here", "count", "scope"),
    [
        (Limits(), 1, 1, "for 1 CPU; for more: --cpus"),
        (Limits(), 3, 3, "for 3 CPUs; for more: --cpus"),
        (Limits(cpus=1), 1, 1, "for 1 CPU"),
        (Limits(cpus=4), 2, 4, "for 4 CPUs, measured on 2"),
        (Limits(cpus="all"), 2, 2, "for 2 CPUs"),
    ],
)
def test_an_answer_says_for_how_many_cpus_it_is(limits: Limits, here: int, count: int, scope: str) -> None:
    assert (limits.for_cpus(here), limits.scope(here)) == (count, scope)


def test_hardware_threads_of_a_core_go_to_one_party() -> None:
    # Two cores of two threads each, numbered as Linux does on most machines: 0 and 2 share a core.
    core_of = {0: 0, 2: 0, 1: 1, 3: 1}
    placed = place((0, 1, 2, 3), core_of=core_of)
    assert placed.server_cpus == (0, 2)
    assert placed.notes == ()
    split = place((0, 1, 2, 3), Limits(cpus=1), core_of)
    assert "hardware threads of one core are split between server and generator" in split.notes


def test_cores_are_read_from_the_topology(tmp_path: Path) -> None:
    for cpu, siblings in {0: "0,2", 1: "1-3", 2: "0,2"}.items():
        (tmp_path / f"cpu{cpu}" / "topology").mkdir(parents=True)
        (tmp_path / f"cpu{cpu}" / "topology" / "thread_siblings_list").write_text(siblings + "\n")
    assert cores((0, 1, 2, 9), tmp_path) == {0: 0, 1: 1, 2: 0, 9: 9}


def test_an_affinity_of_our_own_is_respected() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {max(before)})
        assert usable_cpus() == (max(before),)
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.parametrize(
    ("files", "cgroups", "quota"),
    [
        ({"a/cpu.max": "150000 100000"}, "0::/a/b", 1.5),
        ({"a/cpu.max": "max 100000"}, "0::/a", None),
        ({"a/cpu.max": "300000 100000", "a/b/cpu.max": "50000 100000"}, "0::/a/b", 0.5),
        ({"cpu/x/cpu.cfs_quota_us": "200000", "cpu/x/cpu.cfs_period_us": "100000"}, "1:cpu,cpuacct:/x", 2.0),
        (
            {"cpu/x/cpu.cfs_quota_us": "-1", "cpu/x/cpu.cfs_period_us": "100000"},
            "1:cpu:/x\n2:memory:/y",
            None,
        ),
        ({}, "0::/", None),
    ],
)
def test_a_quota_on_cpu_time_is_found_wherever_it_is_set(
    tmp_path: Path, files: dict[str, str], cgroups: str, quota: float | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    assert quota_cpus(cgroups, tmp_path) == quota
