"""The edge of servers whose boots differ: against theory, and what is claimed of it."""

import math

import numpy as np
import pytest
from tests.judge.search.servers import sojourns_mdc

from velodrome.judge.search.holding import Slope, slope
from velodrome.judge.search.rate import Edge, Measuring, RateSearch, highest_rate
from velodrome.model.quantity import Interval
from velodrome.model.search import Ending, Probe, RateFound, Strain
from velodrome.report import searches

pytestmark = pytest.mark.simulation

SERVICE_S, LIMIT_S = 0.005, 0.05
CAPACITY = 0.7735 / SERVICE_S
"""Of M/D/1 with a p99 of ten service times (`benchmarks/queues.py` works it out)."""


class Boots:
    """M/D/1 whose boots differ by 5 %."""

    def __init__(self, seed: int, spread: float = 0.05) -> None:
        self.random, self.spread = np.random.default_rng(seed), spread
        self.boots, self.pace = 0, 1.0
        self.reboot()

    def reboot(self) -> None:
        self.boots += 1
        self.pace = math.exp(self.spread * self.random.standard_normal())

    def load(self, rate: float, seconds: float = 15.0) -> Probe:
        stay = sojourns_mdc(self.random, rate, 1, SERVICE_S / self.pace, seconds)
        late = float((stay > LIMIT_S).sum())
        allowed = 0.01 * len(stay)
        strains = (Strain("p99 < 50ms", late, allowed, 1000 * LIMIT_S),)
        return Probe(rate, late < allowed, "p99", boot=self.boots, seconds=seconds, strains=strains)

    def search(self) -> RateFound:
        measuring = Measuring(self.load, self.load, self.reboot, lambda rate: self.load(rate, 60.0))
        return highest_rate(measuring, RateSearch(first=60))


def test_the_capacity_of_a_queue_is_that_of_theory_however_short_its_loads_and_different_its_boots() -> None:
    found = [Boots(seed).search() for seed in range(12)]
    intervals = [result.interval for result in found if result.interval is not None]
    assert len(intervals) == len(found)
    assert np.exp(np.mean(np.log([interval.mid for interval in intervals]))) == pytest.approx(
        CAPACITY, rel=0.03
    )
    # 95 % of 12 are 11; fewer than 9 would be an accident of one in a thousand.
    assert sum(interval.low <= CAPACITY <= interval.high for interval in intervals) >= 9
    assert all(result.boots >= 3 for result in found)
    claims = [result.claim for result in found if result.claim]
    assert all(claim.rate <= interval.low * 1.0001 for claim, interval in zip(claims, intervals, strict=True))
    assert sum(claim.proven for claim in claims) >= 10


def test_what_one_boot_shows_is_known_no_better_than_boots_differ() -> None:
    edge, three = Edge(100, 300), Edge(100, 300)
    for boot in (0, 1, 2):
        for rate in (150, 160, 170):
            probe = Probe(rate, rate < 160, strains=(Strain("p99", rate - 158.0, 2.0, 50.0),))
            edge.learn(probe)
            three.learn(Probe(rate, rate < 160, boot=boot, strains=probe.strains))

    def width(interval: Interval) -> float:
        return math.log(interval.high / interval.low)

    assert width(edge.interval()) > 1.3 * width(three.interval())
    assert width(edge.of_boot(0)) < width(edge.interval())


def test_a_limit_of_latency_spreads_the_edges_of_boots_more_the_fewer_slots_serve() -> None:
    """Few slots: the share of late requests rises slowly with the rate (`bend`)."""

    def half(share: float, bend: float) -> float:
        edge = Edge(100, 300)
        for boot in (0, 1, 2):
            for part in (0.0, 0.8, -0.8):
                rate = 160 * math.exp(part / bend)
                strain = Strain("p99", 2.0 * math.exp(part), 2.0, 1000 * bend / rate, share)
                edge.learn(Probe(rate, part < 0, boot=boot, strains=(strain,)))
        interval = edge.interval()
        return math.log(interval.high / interval.low) / 2

    assert half(0.01, 6) > half(0.1, 6) > half(0.0, 6)
    few, many = (half(0.01, bend) / half(0.0, bend) for bend in (6, 100))
    assert few > many + 0.05


def test_a_proof_that_fails_lowers_the_claim_and_is_reported() -> None:
    boots = [0]

    def reboot() -> None:
        boots[0] += 1

    def load(rate: float) -> Probe:
        return Probe(rate, rate < 500, "too slow", boot=boots[0])

    def prove(rate: float) -> Probe:
        return Probe(rate, rate < 400, "the backlog rose by 3.0/s", boot=boots[0], seconds=60.0)

    found = highest_rate(Measuring(load, load, reboot, prove), RateSearch(first=100))
    claim = found.claim
    assert found.interval is not None
    assert claim is not None
    assert claim.proven
    assert claim.rate < 400
    assert [proof.held for proof in claim.proofs] == [False] * (len(claim.proofs) - 1) + [True]
    assert len({proof.boot for proof in claim.proofs}) == len(claim.proofs), "each on a boot of its own"
    assert claim.proofs[0].rate == found.interval.low
    sentence = searches.claim_sentence(found)
    assert "it held for 60 s on a fresh boot" in sentence
    assert "the backlog rose by 3.0/s" in sentence


def test_a_claim_that_never_holds_is_not_claimed() -> None:
    measuring = Measuring(
        lambda rate: Probe(rate, rate < 500, "too slow"),
        lambda rate: Probe(rate, rate < 500, "too slow"),
        prove=lambda rate: Probe(rate, False, "it froze", seconds=60.0),
    )
    found = highest_rate(measuring, RateSearch(first=100))
    assert found.claim is not None
    assert not found.claim.proven
    assert searches.claim_sentence(found).startswith("No rate was proven, in 4 loads of 60 s: ")


def test_what_never_holds_is_not_proven() -> None:
    found = highest_rate(
        Measuring(
            lambda rate: Probe(rate, False, "too slow"),
            lambda rate: Probe(rate, False, "too slow"),
            prove=lambda _: pytest.fail("nothing is there to prove"),
        ),
        RateSearch(first=100, lowest=10),
    )
    assert (found.ending, found.claim) == (Ending.NEVER, None)


def test_a_backlog_is_level_when_its_slope_is_shown_to_be_less_than_one_per_cent_of_the_rate() -> None:
    random = np.random.default_rng(1)
    at = np.arange(0, 20, 0.2)
    still = slope(list(zip(at.tolist(), (5 + random.normal(0, 2, len(at))).tolist(), strict=True)))
    rising = slope(list(zip(at.tolist(), (5 + 8 * at + random.normal(0, 2, len(at))).tolist(), strict=True)))
    assert still is not None
    assert rising is not None
    assert (still.is_level(200), still.rises(200)) == (True, False)
    assert (rising.is_level(200), rising.rises(200)) == (False, True)
    # What is known too badly is neither.
    assert (Slope(0.0, 5.0).is_level(200), Slope(0.0, 5.0).rises(200)) == (False, False)
