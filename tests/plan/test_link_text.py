"""A link is read as people type it, and refused with a sentence."""

import pytest

from velodrome.model.load import Link
from velodrome.plan import surroundings


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("rtt=160ms", Link(160)),
        ("rtt=160ms,rate=100mbit,loss=1%", Link(160, rate_mbit=100, loss=0.01)),
        (" rtt = 1.5s , jitter = 250us ", Link(1500, jitter_ms=0.25)),
        ("rate=512kbit", Link(rate_mbit=0.512)),
        ("rate=1gbit/s,queue=50", Link(rate_mbit=1000, queue_packets=50)),
        ("rate=2.5Mbit".lower(), Link(rate_mbit=2.5)),
        ("rtt=0ms,loss=0.02", Link(loss=0.02)),
        ("rtt=20ms,congestion=bbr", Link(20, congestion="bbr")),
        (surroundings.EXAMPLE, Link(160, 2, 100, 0.01, 500)),
    ],
)
def test_a_link_is_read(text: str, link: Link) -> None:
    assert surroundings.read_link(text) == link


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "empty is no link"),
        (",", "empty is no link"),
        ("160ms", "'160ms' in a link has no value"),
        ("delay=160ms", "a link has no 'delay'; it has rtt, jitter"),
        ("rtt=1ms,rtt=2ms", "one rtt, and here it is given twice"),
        ("rtt=160", "rtt of a link, '160', is not a span"),
        ("rtt=-1ms", "is not a span"),
        ("rtt=2h", "is not a span"),
        ("rtt=61s", "over 60 s"),
        ("jitter=1ms", "more than the delay of each way, 0 ms"),
        ("rtt=10ms,jitter=6ms", "more than the delay of each way, 5 ms"),
        ("rate=100", "rate of a link, '100', is not a rate; write 100mbit"),
        ("rate=100mb", "is not a rate"),
        ("rate=0mbit", "from 1kbit to 100gbit"),
        ("rate=101gbit", "from 1kbit to 100gbit"),
        ("loss=lots", "not a share"),
        ("loss=100%", "must be from 0 to below 1"),
        ("loss=1", "must be from 0 to below 1"),
        ("queue=0", "not a number of packets"),
        ("queue=1e3", "not a number of packets"),
        ("queue=٣", "not a number of packets"),
        ("congestion=vegas", "none of cubic, reno, bbr"),
    ],
)
def test_anything_else_is_refused_with_what_to_write(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        surroundings.read_link(text)


def test_a_table_may_have_numbers_where_no_unit_is_needed() -> None:
    assert surroundings.link_of({"rtt": "20ms", "loss": 0.5, "queue": 7}) == Link(
        20, loss=0.5, queue_packets=7
    )
    for wrong in ({"rtt": 20}, {"loss": True}, {"queue": True}, {"queue": 1.5}, {"loss": float("nan")}):
        with pytest.raises(ValueError, match="of a link"):
            surroundings.link_of(wrong)


def test_labels_tell_links_apart() -> None:
    texts = ("rtt=20ms", "rtt=20ms,jitter=1ms", "rtt=20ms,rate=1mbit", "rtt=20ms,loss=1%", "rtt=20ms,queue=9")
    assert len({surroundings.read_link(text).label for text in (*texts, "rtt=20ms,congestion=bbr")}) == 6
