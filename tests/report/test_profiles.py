"""Profiles in reports: rows, sentences, flame graphs and differences; what came from a server is escaped."""

import dataclasses
import re

import pytest
from tests.report import made_up_verdict
from tests.report.made_up_profiles import verdict, view

from velodrome.model import profile
from velodrome.model.verdict import Verdict
from velodrome.report import html, markdown, profiles, terminal
from velodrome.report import profiles as flames

TURN = ("process 1", "main (app.py)", "_run_once (asyncio/base_events.py)", "Handle._run (asyncio/events.py)")
PARSE = (*TURN, "data_received (uvicorn/protocols/http/h11_impl.py)")
OWN = (*PARSE, "<b>app</b> (<velodrome asgi hello 1>)")
WAIT = (*TURN[:3], "EpollSelector.select (selectors.py)", profile.WAITS)
FIRST = profile.dump({PARSE: 30, OWN: 10, WAIT: 60})
SECOND = profile.dump({PARSE: 60, WAIT: 40})
TEXTS = {"profiles/a.txt": FIRST, "profiles/b.txt": SECOND}


def both() -> Verdict:
    return verdict(view("granian-rsgi", "profiles/a.txt", 0.6), view("tornado", "profiles/b.txt", 0.4))


def test_what_the_loop_runs_stands_at_the_ground_and_waiting_is_left_out() -> None:
    stacks = flames.stacks(FIRST)
    assert stacks == {PARSE[4:]: 30, OWN[4:]: 10}


def test_start_up_that_all_share_is_left_out_where_no_loop_turns() -> None:
    text = profile.dump({("process 1", "main (a.py)", "serve (b.py)", f"{name} (c.py)"): 1 for name in "xy"})
    assert set(flames.stacks(text)) == {("x (c.py)",), ("y (c.py)",)}


@pytest.mark.parametrize("text", ["", "no stacks", profile.dump({WAIT: 3})])
def test_nothing_at_work_draws_nothing(text: str) -> None:
    assert flames.graph(flames.stacks(text), "none") == ""


def test_a_box_is_as_wide_as_its_part_of_the_work() -> None:
    drawn = flames.graph(flames.stacks(FIRST), "one")
    widths = [float(width) for width in re.findall(r'width="([0-9.]+)" height="16"', drawn)]
    assert widths[0] == pytest.approx(flames.WIDTH, abs=1)
    assert widths[1] == pytest.approx(flames.WIDTH / 4, abs=1)


def test_a_difference_is_coloured_by_whose_the_work_is() -> None:
    drawn = flames.difference(flames.stacks(FIRST), flames.stacks(SECOND), (100.0, 100.0), "two")
    shared, own = re.findall(r'fill="var\(--c(\d)\)" fill-opacity="([0-9.]+)"', drawn)
    assert shared == ("1", "0.24"), "60 against 40: the second one's, a little"
    assert own == ("0", "0.72"), "10 against 0: the first one's alone"


def test_functions_that_a_server_named_are_escaped() -> None:
    page = html.render(both(), [], {}, TEXTS)
    assert "<b>app</b>" not in page
    assert "&lt;b&gt;app&lt;/b&gt;" in page
    assert page.count('class="flame"') == 3, "one each and their difference"


def test_profiles_at_other_rates_or_in_a_closed_loop_are_not_compared() -> None:
    closed = verdict(*(dataclasses.replace(profile_view, rate=None) for profile_view in both().profiles))
    (section,) = profiles.sections(closed, TEXTS)
    assert len(section.graphs) == 2


def test_stacks_that_are_gone_leave_the_figures() -> None:
    (section,) = profiles.sections(both(), {})
    assert section.graphs == []
    assert len(section.rows) == 2
    assert section.rows[0][1] == "60 %"


def test_a_profile_that_could_not_be_taken_is_reported_with_its_reason_everywhere() -> None:
    made = verdict(view("tornado", "", 0.0, failed="py-spy is <not> installed"))
    text = " ".join(line.plain.strip() for line in terminal.verdict_lines(made, {}, 100))
    assert "py-spy is <not> installed" in text
    assert "py-spy is &lt;not&gt; installed" in markdown.text(made)
    assert "py-spy is &lt;not&gt; installed" in html.render(made, [], {})


def test_a_loop_written_in_c_is_reported() -> None:
    (sentence,) = profiles.sentences(verdict(view("tornado", "", 0.9, opaque_share=0.8)))
    assert "25 % of a CPU in use" in sentence
    assert "waited in 90 % of their samples, 80 % in a loop written in C that may have worked" in sentence


def test_a_verdict_without_profiles_says_nothing_of_them() -> None:
    plain = made_up_verdict.verdict()
    assert 'id="profiles"' not in html.render(plain, [], {})
    assert "Profile" not in markdown.text(plain)
