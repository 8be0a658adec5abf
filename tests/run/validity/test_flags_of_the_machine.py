from collections.abc import Callable

import pytest

from velodrome.model.measurement import Flag, FlagKind, HostFacts, Severity, UpstreamFacts

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


def test_the_busiest_other_program_is_named(raised: Flags) -> None:
    host = HostFacts(0.0, 8.0, busiest_other="cc1")
    assert "used 40 % of this machine's CPU during the run, 'cc1' most of all" in (
        raised(sampled={"host": host})[FlagKind.OTHER_LOAD].sentence
    )


def test_the_same_neighbour_on_a_large_machine_is_no_matter(raised: Flags) -> None:
    assert FlagKind.OTHER_LOAD not in raised(sampled={"host": HostFacts(0.0, 8.0)}, machine_cpus=64)


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
