"""A database that has no CPU left is reported: then the figures are its own."""

import pytest
from tests.run.validity.conftest import Flags

from velodrome.model.measurement import FlagKind, Severity, UpstreamFacts

KIND = FlagKind.COMPANION_SATURATED


def beside(cpu_s: float) -> dict[str, object]:
    return {"beside_cpu_s": {"redis": 0.1, "postgresql": cpu_s}}


@pytest.mark.parametrize(
    ("cpu_s", "severity"),
    [(5.0, None), (6.2, Severity.NOTE), (7.6, Severity.INVALID), (9.9, Severity.INVALID)],
)
def test_it_counts_with_the_generator_where_they_share_cpus(
    cpu_s: float, severity: Severity | None, raised: Flags
) -> None:
    found = raised(sampled=beside(cpu_s)).get(KIND)  # the generator's 2.0 s of 10.0 come on top
    assert (found.severity if found else None) == severity
    if found:
        assert "postgresql the most" in found.sentence
        assert "with the generator" in found.sentence


def test_it_counts_alone_on_cpus_of_its_own(raised: Flags) -> None:
    assert KIND not in raised(sampled=beside(7.6), beside_load=False)
    assert KIND not in raised(sampled=beside(9.9), beside_load=False, beside_cpus=2)
    assert KIND in raised(sampled=beside(9.9), beside_load=False)
    third_party = UpstreamFacts(1000, 1.5, 0.0, 0.0)
    assert KIND in raised(sampled=beside(7.6), beside_load=False, upstream=third_party)


def test_without_a_database_a_busy_generator_is_no_matter_of_this_flag(raised: Flags) -> None:
    assert KIND not in raised(facts={"generator_cpu_s": 9.9})
