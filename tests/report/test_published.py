"""Published tables read well in every report: the published figure, then what was measured under each load."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report import made_up
from tests.report.made_up_verdict import verdict

from velodrome.model.claim import Compared, Here, Line
from velodrome.model.quantity import Interval
from velodrome.model.verdict import Verdict
from velodrome.report import claims, html, json, markdown, terminal

GHZ, OURS = "closed-1-x100-n10000-ghz", "closed-1-x100"
TABLES = (
    Compared(
        "ghz -c 100 <b>",
        (
            Line("say/threads", "grpcio · threads", "throughput_rps", 3746.87, (
                Here(GHZ, "ghz", Interval(5372, 5797, 6257)),
                Here(OURS, "velodrome", Interval(5405, 5810, 6245), limit="at least"),
            )),
            Line("say/threads", "grpcio · threads", "min_service_ms", None, (
                Here(GHZ, "ghz", None, "ghz reported no fastest request"),
                Here(OURS, "velodrome", Interval(9, 10, 18)),
            )),
            Line("say/aio", "grpc.aio", "throughput_rps", "clearly more", (
                Here(GHZ, "ghz", Interval(5704, 6159, 6651)),
                Here(OURS, "velodrome", Interval(5943, 6388, 6867)),
            )),
        ),
    ),
    Compared(
        "Constant rates",
        (
            Line("sleep/tornado", "Tornado", "p50_ms", "fine", (Here("open-1000", "velodrome", Interval(51, 52, 53)),)),
            Line("sleep/tornado", "Tornado", "p50_ms", None, (Here("open-1200", "velodrome", Interval(94, 95, 96)),)),
        ),
    ),
)  # fmt: skip


def with_tables() -> Verdict:
    return replace(verdict(), tables=TABLES)


@pytest.mark.parametrize("width", [80, 120])
def test_the_tables_read_well(width: int, golden: Callable[[str, str], None]) -> None:
    lines = [str(line).rstrip() for line in claims.published_lines(TABLES, width)]
    assert max(map(len, lines)) < width
    golden(f"published-{width}.txt", "\n".join(lines) + "\n")


def test_the_terminal_shows_them_after_the_claims() -> None:
    text = "\n".join(str(line) for line in terminal.verdict_lines(with_tables(), {}, 100))
    assert "As published: ghz -c 100 <b>" in text


def test_the_markdown_has_each_as_a_table(golden: Callable[[str, str], None]) -> None:
    golden("published.md", "\n".join(markdown.published_section(with_tables())) + "\n")
    assert "### As published: Constant rates" in markdown.text(with_tables())


def test_the_page_has_a_section_of_them_and_escapes_their_titles() -> None:
    page = html.render(with_tables(), made_up.results(), made_up.HEADER)
    assert 'id="published"' in page
    assert "ghz -c 100 &lt;b&gt;" in page
    assert 'id="published"' not in html.render(verdict(), made_up.results(), made_up.HEADER)


def test_they_are_stored_with_the_verdict(tmp_path: Path) -> None:
    json.write(tmp_path / "verdict.json", with_tables())
    assert json.read(tmp_path / "verdict.json").tables == TABLES
