import re
from html.parser import HTMLParser

import pytest

from velodrome.report import charts
from velodrome.report.charts import sparkline, steps, style_of, ticks_to

HOSTILE = '<script>alert(1)</script>" onload="alert(2)'


class Elements(HTMLParser):
    """Collects the names of the elements and attributes that a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def row(name: str, rank: int | None) -> charts.Ranked:
    return charts.Ranked(name, "197 ±2", 195, 197, 199, 200, rank, "var(--c0)", HOSTILE)


def test_text_in_a_drawing_is_escaped_and_stands_under_the_pointer() -> None:
    drawn = charts.ranking([row(HOSTILE, 1), row("b", 1), row("c", None)], HOSTILE)
    elements = Elements()
    elements.feed(drawn)
    assert "script" not in elements.tags
    assert not [name for name in elements.attributes if name.startswith("on")]
    assert "<title>&lt;script&gt;" in drawn


def test_a_drawing_refers_to_nothing_outside_itself() -> None:
    drawn = charts.latency([charts.Curve(1, [(50.0, 1.0), (99.0, 9.0)], "var(--c0)", [])], 0.5, 20, "latency")
    assert not re.search(r"https?:|//|xlink|@import", drawn)
    assert 'stroke="var(--c0)"' in drawn


def test_ties_are_bracketed_and_those_alone_are_not() -> None:
    tied = charts.ranking([row("a", 1), row("b", 1)], "r")
    alone = charts.ranking([row("a", 1), row("b", 2)], "r")
    bracket = '<path d="M10'
    assert (tied.count(bracket), alone.count(bracket)) == (1, 0)


def test_nothing_measured_is_drawn_as_nothing_not_as_zero() -> None:
    empty = charts.Ranked("a", "failed", None, None, None, None, None, "var(--c0)", "")
    assert "failed" in charts.ranking([empty], "r")
    assert "<title>" not in charts.ranking([empty], "r")


def test_no_two_of_many_contestants_look_the_same() -> None:
    looks = {(colour, tuple(dash)) for colour, dash in map(style_of, range(32))}
    assert len(looks) == 32


def test_neighbours_differ_without_their_colour() -> None:
    assert all(style_of(place)[1] != style_of(place + 1)[1] for place in range(7))


def test_numbers_at_the_ends_of_lines_do_not_cover_each_other() -> None:
    placed = charts.apart([100.0, 101.0, 102.0, 249.0, 250.0], 250)
    assert all(abs(a - b) >= charts.LINE_HEIGHT for i, a in enumerate(placed) for b in placed[:i])
    assert max(placed) <= 250


def test_the_front_holds_those_whom_nobody_beats_in_both() -> None:
    points = [(24.0, 37.0), (31.0, 41.0), (14.0, 4.0), (38.0, 15.0), (31.0, 20.0)]
    assert charts.pareto(points) == [(14.0, 4.0), (24.0, 37.0), (31.0, 41.0)]


@pytest.mark.parametrize(
    ("most", "found"),
    [(200.0, [0, 50, 100, 150, 200]), (41_700.0, [0, 20_000, 40_000]), (0.9, [0, 0.25, 0.5, 0.75])],
)
def test_ticks_are_round(most: float, found: list[float]) -> None:
    assert ticks_to(most) == pytest.approx(found)


def test_steps_of_a_log_axis_are_one_two_five() -> None:
    assert steps(0.15, 6) == pytest.approx([0.2, 0.5, 1, 2, 5])


def test_a_second_without_a_value_breaks_the_line_and_a_stall_is_shaded() -> None:
    drawn = sparkline([[1.0, None, 2.0]], [[False, True, False]], "var(--c0)")
    assert drawn.count("M", drawn.index('stroke="var') - 60) >= 1
    assert drawn.count('class="stall"') == 1
    line = re.findall(r'<path d="([^"]*)" stroke', drawn)[0]
    assert line.count("M") == 2


def test_latency_over_load_has_a_point_and_an_interval_where_there_is_one() -> None:
    points = [charts.AtLoad(0.2, 22.0, 18.0, 31.0, HOSTILE), charts.AtLoad(0.8, 88.0, None, None, "80 %")]
    drawn = charts.over_load(points, "p99 over load")
    assert drawn.count("<circle") == 2
    assert drawn.count('opacity="0.45"') == 1
    assert "<title>&lt;script&gt;" in drawn
    left, right = (float(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawn))
    assert right == pytest.approx(4 * left, rel=0.01)
    assert charts.over_load([], "nothing") == ""
