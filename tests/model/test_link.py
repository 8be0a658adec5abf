"""What follows from a link: its queue, its name, and how long a request takes over it."""

import pytest

from velodrome.model.load import SEGMENT, Link


def test_the_queue_holds_a_bandwidth_delay_product_unless_it_is_given() -> None:
    assert Link(160).room is None  # nothing to wait for
    assert Link(160, rate_mbit=100).room == 1334  # 100 Mbit/s x 160 ms / (1500 x 8)
    assert Link(1, rate_mbit=10).room == 100
    assert Link(160, rate_mbit=100, queue_packets=7).room == 7


@pytest.mark.parametrize(
    ("received", "rounds"),
    [(84, 2), (10 * SEGMENT, 2), (10 * SEGMENT + 1, 3), (220_000, 6), (30 * SEGMENT, 3)],
)
def test_slow_start_takes_a_round_trip_for_each_doubling(received: int, rounds: int) -> None:
    assert Link(100).fetch_s(0, received) == pytest.approx(rounds * 0.1)


def test_an_upload_and_a_bottleneck_take_their_time_too() -> None:
    assert Link(100).fetch_s(30 * SEGMENT, 84) == pytest.approx(0.3)
    assert Link(rate_mbit=8).fetch_s(1_000_000, 1_000_000) == pytest.approx(2.0)
    assert Link().fetch_s(0, 84) == 0


def test_a_sentence_tells_what_a_request_meets() -> None:
    assert Link(160).described == "160 ms"
    assert (
        Link(80, 2, 0.5, 0.01, 50, "bbr").described == "80 ms ± 4, 0.5 Mbit/s, a queue of 50, 1 % loss, bbr"
    )


def test_a_label_has_everything_that_was_given() -> None:
    assert Link(160).label == "rtt160ms"
    assert Link(80, rate_mbit=100, loss=0.01).label == "rtt80ms-100mbit-loss1%"
    assert Link(80, 2, 0.5, 0, 50, "bbr").label == "rtt80ms-jitter2ms-0.5mbit-queue50-bbr"
