from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.run.validity.conftest import FACTS

from velodrome.model.measurement import (
    CpuLosses,
    Flag,
    FlagKind,
    HostFacts,
    Placement,
    Severity,
    UpstreamFacts,
    shared_share,
)

Flags = Callable[..., dict[FlagKind, Flag]]


@pytest.mark.parametrize(
    ("steal_s", "severity"), [(None, None), (0.19, None), (0.2, Severity.NOTE), (1.0, Severity.INVALID)]
)
def test_stolen_cpu_counts_by_its_share_of_two_cpus_over_ten_seconds(
    raised: Flags, steal_s: float | None, severity: Severity | None
) -> None:
    flag = raised(sampled={"host": HostFacts(steal_s, 0.0)}).get(FlagKind.CPU_STEAL)
    assert (flag.severity if flag else None) is severity


@pytest.mark.parametrize(
    ("other_s", "severity"), [(None, None), (0.9, None), (1.0, Severity.NOTE), (3.0, Severity.INVALID)]
)
def test_other_programs_count_by_their_share_of_the_machine(
    raised: Flags, other_s: float | None, severity: Severity | None
) -> None:
    flag = raised(sampled={"host": HostFacts(0.0, other_s)}).get(FlagKind.OTHER_LOAD)
    assert (flag.severity if flag else None) is severity


def test_the_cpus_of_server_and_generator_count_and_not_those_of_others(raised: Flags) -> None:
    """On 16 CPUs, 10 s: 1 % of them all is 16 % of one."""
    for server, load, whose in ((1.6, 0.0, "server"), (0.0, 1.6, "generator")):
        host = HostFacts(
            1.6, 1.6, server_cpus=CpuLosses((3,), server, server), load_cpus=CpuLosses((4,), load, load)
        )
        found = raised(sampled={"host": host}, machine_cpus=16)
        for kind in (FlagKind.CPU_STEAL, FlagKind.OTHER_LOAD):
            assert found[kind].severity is Severity.INVALID
            assert found[kind].facts["share"] == pytest.approx(0.16)
            assert whose in str(found[kind].facts["of"])
    elsewhere = HostFacts(
        100.0, 100.0, server_cpus=CpuLosses((3,), 0.05, 0.4), load_cpus=CpuLosses((4,), 0.0, 0.0)
    )
    assert not {FlagKind.CPU_STEAL, FlagKind.OTHER_LOAD} & raised(sampled={"host": elsewhere}).keys()


def test_several_cpus_of_a_server_lose_a_share_of_all_of_them(raised: Flags) -> None:
    host = HostFacts(1.6, 1.6, server_cpus=CpuLosses((2, 3, 4, 5), 1.6, 1.6))
    found = raised(sampled={"host": host}, machine_cpus=16)
    assert found[FlagKind.CPU_STEAL].severity is Severity.NOTE
    assert FlagKind.OTHER_LOAD not in found


def test_the_busiest_other_program_is_named(raised: Flags) -> None:
    host = HostFacts(0.0, 8.0, busiest_other="cc1")
    flag = raised(sampled={"host": host})[FlagKind.OTHER_LOAD]
    assert (flag.facts["busiest"], flag.facts["share"]) == ("cc1", 0.4)
    assert "'cc1'" in flag.sentence


def test_the_same_neighbour_on_a_large_machine_is_no_matter(raised: Flags) -> None:
    assert FlagKind.OTHER_LOAD not in raised(sampled={"host": HostFacts(0.0, 8.0)}, machine_cpus=64)


@pytest.mark.parametrize(
    ("share", "severity"), [(0.0, None), (0.09, None), (0.1, Severity.NOTE), (0.5, Severity.INVALID)]
)
def test_a_cpu_that_is_shared_counts_by_what_others_used_of_it(
    raised: Flags, share: float, severity: Severity | None
) -> None:
    flag = raised(shared_share=share).get(FlagKind.CPU_SHARED)
    assert (flag.severity if flag else None) is severity


def test_only_what_runs_on_the_servers_cpus_is_shared_with_it() -> None:
    third_party, load = UpstreamFacts(100, 3.0, None, None), replace(FACTS, generator_cpu_s=2.0)
    apart = Placement((0,), (1,), (1,), False, "nothing")
    assert shared_share(apart, load, third_party) == 0.0
    one_cpu = Placement((0,), (0,), (0,), True, "nothing")
    assert shared_share(one_cpu, load, third_party, companions_cpu_s=1.0) == pytest.approx(0.6)
    beside_load = Placement((0, 1), (1,), (1,), True, "nothing")
    assert shared_share(beside_load, load, third_party) == pytest.approx(0.5)
    spread = Placement((0, 1, 2, 3), (2, 3), (3,), True, "nothing")
    assert shared_share(spread, load, third_party) == pytest.approx(0.4)
    assert shared_share(beside_load, replace(load, duration_s=0.0)) == 0.0


def test_swapping_is_noted(raised: Flags) -> None:
    host = HostFacts(0.0, 0.0, swapped_bytes=30_000_000)
    assert "30 MB" in raised(sampled={"host": host})[FlagKind.SWAPPED].sentence


@pytest.mark.parametrize(
    ("p50", "p99", "severity"),
    [
        (0.05, 0.9, None),
        (0.05, 9.9, None),  # within 5 % of 200 ms
        (0.05, 30.0, Severity.NOTE),
        (12.0, 30.0, Severity.INVALID),
        (None, None, None),
    ],
)
def test_a_late_third_party_counts_by_its_share_of_the_wait(
    raised: Flags, p50: float | None, p99: float | None, severity: Severity | None
) -> None:
    flag = raised(upstream=UpstreamFacts(4000, 0.04, p50, p99), wait_ms=200.0).get(FlagKind.UPSTREAM_LATE)
    assert (flag.severity if flag else None) is severity
