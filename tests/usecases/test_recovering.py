"""When a server has worked off what was too much for it."""

import itertools
import time

import pytest

from velodrome.usecases import bench
from velodrome.usecases.bench import RECOVERY_REQUESTS, wait_for_recovery


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "PAUSE_S", 0.001)


def test_it_has_when_answers_come_about_as_fast_as_one_alone_did() -> None:
    slowest = iter([900.0, 31.0, 29.0])
    assert wait_for_recovery(lambda _: (RECOVERY_REQUESTS, next(slowest)), alone_ms=10.0, patience_s=60)
    assert next(slowest, None) is None


def test_answers_that_fail_are_no_recovery_however_fast_they_are() -> None:
    right = itertools.chain([0, RECOVERY_REQUESTS - 1], itertools.repeat(RECOVERY_REQUESTS))
    times_left = []

    def send(left_s: float) -> tuple[int, float]:
        times_left.append(left_s)
        return next(right), 1.0

    assert wait_for_recovery(send, alone_ms=10.0, patience_s=60)
    assert len(times_left) == 3
    assert times_left == sorted(times_left, reverse=True)


def test_fractions_of_a_millisecond_are_no_slowness() -> None:
    assert wait_for_recovery(lambda _: (RECOVERY_REQUESTS, 0.9), alone_ms=0.05, patience_s=1)


def test_where_nothing_was_sent_before_right_answers_are_enough() -> None:
    assert wait_for_recovery(lambda _: (RECOVERY_REQUESTS, 5_000.0), alone_ms=0.0, patience_s=1)


def test_patience_ends_and_a_server_that_is_gone_ends_it_at_once() -> None:
    began = time.monotonic()
    assert not wait_for_recovery(lambda _: (RECOVERY_REQUESTS, 5_000.0), alone_ms=1.0, patience_s=0.05)
    assert not wait_for_recovery(lambda _: None, alone_ms=1.0, patience_s=60)
    assert time.monotonic() - began < 30
