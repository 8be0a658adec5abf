"""A link that was late, lost packets of its own, or left its generator no CPU."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from velodrome.model.load import Open
from velodrome.model.measurement import Flag, FlagKind, Latency, LinkFacts, Severity, WayFacts

Flags = Callable[..., dict[FlagKind, Flag]]
WAY = WayFacts(40_000, 4_000_000, 0, 0)
LINK = LinkFacts("relay", "cubic", 20.1, WAY, WAY, 0, 0, 0.03, 0.15, 2.0, "", 0.9, True)


def test_a_link_that_kept_its_word_raises_nothing(raised: Flags) -> None:
    assert raised(link=LINK, rtt_ms=20.0) == {}
    netem = replace(LINK, late_p50_ms=None, late_p99_ms=None, late_max_ms=None, cpu_s=None)
    assert raised(link=netem, rtt_ms=20.0) == {}


@pytest.mark.parametrize(
    ("late", "due", "severity"),
    [
        ((0.49, 0.49), (10.0, 10.0), None),  # both ways 9.8 % of what is shown
        ((0.51, 0.51), (10.0, 10.0), Severity.NOTE),
        ((2.6, 2.6), (10.0, 10.0), Severity.INVALID),
        ((0.2, 0.24), (0.5, 0.9), None),  # below what any decision turns on
        ((0.1, 1.5), (10.0, 20.0), Severity.NOTE),  # the p99 alone
        ((0.1, 4.5), (10.0, 12.0), Severity.NOTE),  # a pause as virtual machines have them
        ((0.1, 8.0), (10.0, 20.0), Severity.INVALID),
    ],
)
def test_lateness_counts_by_its_share_of_the_latency_shown(
    raised: Flags, late: tuple[float, float], due: tuple[float, float], severity: Severity | None
) -> None:
    link = replace(LINK, late_p50_ms=late[0], late_p99_ms=late[1])
    shown = Latency(due[0], due[0], due[0], due[0], due[0], due[1], due[1], due[1])
    flag = raised(facts={"due": shown, "sent": shown, "mean_in_flight": 4.0 * due[0]}, link=link).get(
        FlagKind.LINK_LATE
    )
    assert (flag.severity if flag else None) is severity


def test_packets_lost_because_the_link_did_not_keep_up_set_the_run_aside(raised: Flags) -> None:
    flag = raised(link=replace(LINK, overrun=12))[FlagKind.LINK_LATE]
    assert flag.severity is Severity.INVALID
    assert "lost 12 packets because it did not keep up" in flag.sentence


@pytest.mark.parametrize(
    ("rate_mbit", "dropped", "is_full"),
    [(None, 0, False), (10.0, 0, False), (3.3, 0, True), (3.3, 8_000, False), (2.7, 8_000, True)],
)
def test_a_link_that_carried_its_whole_rate_was_the_limit(
    raised: Flags, rate_mbit: float | None, dropped: int, is_full: bool
) -> None:
    # 4 MB in 10 s are 3.2 Mbit/s, less a fifth where 8 000 of 40 000 packets found the queue full.
    link = replace(LINK, back=replace(WAY, dropped=dropped), there=replace(WAY, bytes=100_000))
    flag = raised(link=link, rate_mbit=rate_mbit).get(FlagKind.LINK_FULL)
    assert (flag is not None) is is_full
    if flag is not None:
        assert flag.severity is Severity.NOTE
        assert f"of its {rate_mbit:g} Mbit/s back" in flag.sentence


@pytest.mark.parametrize(("cpu_s", "cpus", "full"), [(6.9, 1, False), (7.1, 1, True), (7.1, 2, False)])
def test_generator_and_link_share_their_cpus(raised: Flags, cpu_s: float, cpus: int, full: bool) -> None:
    flag = raised(link=replace(LINK, cpu_s=cpu_s), load_cpus=cpus).get(FlagKind.GENERATOR_SATURATED)
    assert (flag is not None) is full


def test_a_link_needs_more_connections_for_the_same_rate(raised: Flags) -> None:
    pace = Open(4000.0, connections=300)
    assert FlagKind.CAPPED_BY_CONNECTIONS not in raised(pace=pace)
    flag = raised(pace=pace, link=LINK, rtt_ms=160.0)[FlagKind.CAPPED_BY_CONNECTIONS]
    assert flag.severity is Severity.INVALID
    assert "needs 640" in flag.sentence
