import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.judge import made

from velodrome.judge.tuning.forecasting import leak
from velodrome.model.measurement import Measurement, ServerSample


def loaded(rss: Callable[[float], float], seconds: float = 8.0, rps: float = 500.0) -> Measurement:
    found = made.measured(made.trial("one"), rps)
    samples = tuple(
        ServerSample(at / 2, 0.0, round(rss(at / 2)), 4, 2, None, None) for at in range(1, round(seconds * 2))
    )
    return replace(found, server=replace(found.server, samples=samples))


def test_memory_that_rises_with_every_request_is_a_leak() -> None:
    random = np.random.default_rng(1)
    found = leak(loaded(lambda at: 60e6 + 2e6 * at + random.normal(0, 50_000)))
    assert found is not None
    assert found.bytes_per_request == pytest.approx(4_000, rel=0.1)
    assert found.seconds_to(10**9, 100_000_000, 250.0) == pytest.approx(900, rel=0.1)


def test_a_server_that_fills_its_arenas_at_first_does_not_leak() -> None:
    random = np.random.default_rng(2)
    assert leak(loaded(lambda at: 60e6 + min(at, 2) * 5e6 + random.normal(0, 50_000))) is None


def wobbling(seed: int) -> Measurement:
    random = np.random.default_rng(seed)
    return loaded(lambda _: 60e6 + random.normal(0, 300_000))


def test_memory_that_wobbles_does_not_leak() -> None:
    for seed in range(50):
        assert leak(wobbling(seed)) is None, seed


def test_a_load_that_was_short_says_nothing() -> None:
    assert leak(loaded(lambda at: 60e6 + 2e6 * at, seconds=2.0)) is None


def test_only_what_rises_for_long_and_as_steep_in_the_end_is_reported_to_go_on() -> None:
    random = np.random.default_rng(3)

    def noisy(rss: Callable[[float], float], seconds: float) -> Measurement:
        return loaded(lambda at: rss(at) + random.normal(0, 20_000), seconds)

    short = leak(noisy(lambda at: 60e6 + 2e6 * at, 8.0))
    assert short is not None
    assert not short.goes_on
    assert short.seen_s < 8

    long = leak(noisy(lambda at: 60e6 + 2e6 * at, 60.0))
    assert long is not None
    assert long.goes_on
    assert long.seen_s > 25


def test_a_cache_that_fills_does_not_go_on() -> None:
    random = np.random.default_rng(4)

    def filling(fills_s: float) -> Callable[[float], float]:
        return lambda at: 60e6 + 80e6 * (1 - math.exp(-at / fills_s)) + random.normal(0, 20_000)

    for fills_s in (15.0, 30.0, 60.0):
        found = leak(loaded(filling(fills_s), 60.0))
        assert found is None or not found.goes_on, fills_s
