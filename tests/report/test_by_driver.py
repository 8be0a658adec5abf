"""The same load by several drivers: rows beside each other, each latency under its own name, in every report."""

import dataclasses

import pytest
from tests.report import made_up_verdict

from velodrome.model.verdict import Answer, DriverView, LatencyView, Verdict
from velodrome.report import html, markdown, names, terminal, verdict_tables

OWN = DriverView("velodrome", "", "from when due", "status and body", (), (), 0.1)
WRK = DriverView(
    "wrk",
    "4.1.0",
    "service time (wrk)",
    "the HTTP status",
    ("p99.9", "histograms"),
    ("It was <warmed> up.",),
    0.42,
)


def verdict() -> Verdict:
    """The made-up race, its first question also by wrk, whose blocks cannot be merged."""
    made = made_up_verdict.verdict()
    first = made.answers[0]
    rows = tuple(
        dataclasses.replace(row, latency=(*own(row.latency), by_wrk(row.latency[0]))) if row.latency else row
        for row in first.standings
    )
    return dataclasses.replace(made, answers=(dataclasses.replace(first, standings=rows), *made.answers[1:]))


def own(views: tuple[LatencyView, ...]) -> tuple[LatencyView, ...]:
    return tuple(dataclasses.replace(view, by=OWN, cpu_us_per_request=12.0) for view in views)


def by_wrk(view: LatencyView) -> LatencyView:
    return dataclasses.replace(
        view,
        load=f"{view.load}-wrk",
        by=WRK,
        p50_ms=None,
        p99_ms=None,
        between={"p50_ms": (1.0, 1.0), "p99_ms": (12.0, 13.9)},
        curve_due=(),
        curve_sent=(),
    )


@pytest.fixture
def answer() -> Answer:
    return verdict().answers[0]


def test_a_load_by_another_driver_has_a_table_with_ours_beside_it(answer: Answer) -> None:
    (table,) = verdict_tables.driver_tables(answer)
    assert table.load == "closed loop, 40 connections"
    first, second = table.rows[:2]
    assert (first.label, first.texts[1], first.texts[-1]) == (second.label, "velodrome", "from when due")
    assert second.texts[1] == "wrk 4.1.0"
    assert second.texts[-1] == "service time (wrk)"
    assert second.texts[3:5] == ("1.00", "12.0–13.9")


def test_a_race_by_velodromes_own_generator_alone_has_no_such_table() -> None:
    answer = made_up_verdict.verdict().answers[0]
    assert verdict_tables.driver_tables(answer) == []
    assert verdict_tables.reach(answer) == verdict_tables.driver_lines(answer, 100) == []


def test_what_a_driver_does_not_report_is_named(answer: Answer) -> None:
    assert verdict_tables.reach(answer) == [
        "wrk: latency is service time (wrk); it looks at the HTTP status; not known: p99.9, histograms. "
        "It was <warmed> up."
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_terminal_shows_both_in_its_width(answer: Answer, width: int) -> None:
    lines = [line.plain for line in terminal.answer_lines(answer, width)]
    assert "service time (wrk)" in " ".join(line.strip() for line in lines)
    table = [line for line in lines if "wrk 4.1.0" in line or " velodrome " in line]
    assert len(table) > 2
    assert max(map(len, table)) <= width
    assert all("36 900" in line or "12.0–13.9" in line or "velodrome" in line for line in table)


def test_markdown_and_html_show_both_and_escape_notes() -> None:
    text = markdown.text(verdict())
    assert "| wrk 4.1.0 |" in text
    assert "&lt;warmed&gt;" in text
    page = html.render(verdict(), [], {})
    assert "service time (wrk)" in page
    assert "&lt;warmed&gt;" in page
    assert 'href="#drivers"' in page
    assert 'href="#drivers"' not in html.render(made_up_verdict.verdict(), [], {})


def test_the_latency_shown_first_is_from_when_due_where_there_is_one(answer: Answer) -> None:
    views = next(row.latency for row in answer.standings if row.latency)
    shown = names.latency_view(reversed(views))
    assert shown is not None
    assert names.basis(shown) == "from when due"


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("closed-40", "closed loop, 40 connections"),
        ("closed-1-x100-n10000-ghz", "closed loop, 1 connection × 100 streams, 10 000 requests, by ghz"),
        (
            "closed-100-n1000-close-ab",
            "closed loop, 100 connections, 1 000 requests, a connection for each request, by ab",
        ),
        ("closed-40-idle950", "closed loop, 40 connections, 950 idle connections beside"),
        ("open-500-poisson", "open loop, poisson 500/s"),
        ("open-20-oha", "open loop, constant 20/s, by oha"),
    ],
)
def test_a_load_is_read_as_words(label: str, words: str) -> None:
    assert names.load_label(label).replace("\u202f", " ") == words


@pytest.mark.parametrize(
    ("label", "own_label"),
    [
        ("closed-40-wrk", "closed-40"),
        ("closed-40", "closed-40"),
        ("closed-1-x100-n10000-ghz", "closed-1-x100-n10000"),
        ("closed-4-close", "closed-4-close"),
        ("open-20-poisson", "open-20-poisson"),
    ],
)
def test_the_same_load_by_our_own_driver_has_the_label_without_it(label: str, own_label: str) -> None:
    assert names.without_driver(label) == own_label


def test_a_count_of_requests_stands_beside_the_same_load_by_time() -> None:
    made = verdict().answers[0]
    rows = tuple(
        dataclasses.replace(
            row,
            latency=tuple(
                dataclasses.replace(view, load="closed-40-n500-wrk") if view.load.endswith("wrk") else view
                for view in row.latency
            ),
        )
        for row in made.standings
    )
    (table,) = verdict_tables.driver_tables(dataclasses.replace(made, standings=rows))
    assert table.load == "closed loop, 40 connections"
    assert [row.texts[1] for row in table.rows[:2]] == ["velodrome", "wrk 4.1.0, 500 requests"]
