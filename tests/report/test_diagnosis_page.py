"""The page of an examination: causes, both arms, the lanes of the timeline; nothing that an app chose runs in it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.made_up_doctor import HOSTILE, SLO, TIMELINE, hostile, ill, well

from velodrome.model.diagnosis import Timeline
from velodrome.model.errors import OutputError
from velodrome.report.diagnosis_page import NOT_TOLD, WIDE, render, timeline_figure, write

pytestmark = pytest.mark.unit


def text(page: str) -> str:
    """Return what a reader reads of a page: no style, no tags."""
    body = page.partition("<body>")[2] or page
    return re.sub(r"<[^>]+>", " ", body).replace("&#39;", "'").replace("&lt;", "<").replace("&gt;", ">")


def test_a_cause_is_a_card_with_its_line_its_cost_its_cure_and_both_arms() -> None:
    page = render(ill())
    sentence = text(page)
    for part in (
        "2 causes proven",
        "pricing.py:88 in price",
        "404/s of throughput",
        "await asyncio.to_thread(price, cart)",
        "proven by its cure",
        "requests per second",
        "p99, milliseconds",
        "SLO p99 < 200ms, as it is: it holds up to 41.0/s",
        "SLO p99 < 200ms, cured: it holds up to 413/s",
    ):
        assert part in sentence, part
    assert page.index("blocking-call") < page.index("log-cost") < page.index("gil-convoy")
    assert "/srv/shop/" not in sentence


def test_what_stands_between_backticks_is_code_and_still_escaped() -> None:
    cause = replace(ill().causes[0], reason="a `<b>` call")
    page = render(replace(ill(), diagnoses=(cause,)))
    assert "a <code>&lt;b&gt;</code> call" in page


def test_a_disturbed_machine_is_reported() -> None:
    assert "The machine was disturbed in 4 of 46 loads" in text(render(ill()))


def test_every_lane_of_the_timeline_is_there_and_says_what_it_shows() -> None:
    sentence = text(render(ill()))
    for part in (
        "Event loop late: 3 times",
        "in price (pricing.py:88)",
        "Collections of garbage: 2 of 1 ms or longer, 1 of the whole heap",
        "(throttled): at most 0.3",
        "Listen queue overflowed: at most 12 connections",
    ):
        assert part in sentence, part


def test_lanes_share_their_seconds() -> None:
    assert "vent loop" not in text(str(timeline_figure(TIMELINE, loop=False)))
    drawn = timeline_figure(TIMELINE)
    lefts = {float(x) for x in re.findall(r'<rect x="([\d.]+)"', drawn)}
    stall, collection = 0.9 / 3 * WIDE, 0.91 / 3 * WIDE
    assert {round(stall, 1), round(collection, 1)} <= lefts


def test_what_the_system_does_not_report_is_named_and_not_drawn_as_none() -> None:
    silent = replace(TIMELINE, counts=tuple(replace(count, throttled_s=None) for count in TIMELINE.counts))
    assert f"(throttled): {NOT_TOLD}" in text(str(timeline_figure(silent)))
    empty = text(str(timeline_figure(Timeline("closed-8", 1.0, (), (), (), ()))))
    assert "Event loop: never late" in empty
    assert f"Listen queue overflowed: {NOT_TOLD}" in empty


def test_a_healthy_app_has_no_card_and_says_so() -> None:
    sentence = text(render(well()))
    assert "No cause was proven" in sentence
    assert "SLO" not in sentence
    assert "What happened when" not in sentence


def test_nothing_that_an_app_chose_runs_or_breaks_out() -> None:
    page = render(hostile())
    assert "<script" not in page
    assert "\x1b" not in page
    assert HOSTILE not in page


def test_an_slo_whose_cure_was_not_searched_says_why() -> None:
    open_ = replace(ill(), slo=replace(SLO, cured=None, why_not_cured="no cause was cured"))
    assert "not searched: no cause was cured" in text(render(open_))


def test_it_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write(tmp_path / "doctor.html", ill())
    assert (tmp_path / "doctor.html").read_text(encoding="utf-8") == render(ill())
    with pytest.raises(OutputError, match="nowhere"):
        write(tmp_path / "nowhere" / "doctor.html", ill())
