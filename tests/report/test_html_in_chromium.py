"""The report as a reader sees it: in Chromium, on a wide screen and on a phone, in light and in dark."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.report import made_up
from tests.report.made_up_verdict import verdict
from tests.report.opened import ARGUMENTS, CHROMIUM, LOOKS, Opened, playwright

from velodrome.report import html

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.integration,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH: apt-get install chromium"),
]
MUTED_ON_PAPER = [("rgb(92, 96, 102)", "rgb(255, 255, 255)"), ("rgb(163, 168, 174)", "rgb(22, 24, 27)")]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    html.write(path, verdict(), made_up.results(), made_up.HEADER)
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(params=LOOKS, ids=lambda look: f"{look[0]}-{look[1]}")
def look(request: pytest.FixtureRequest, browser: "Browser", report: Path) -> Iterator[Opened]:
    opened = Opened(browser, report, *request.param)
    yield opened
    opened.context.close()


@pytest.fixture
def wide(browser: "Browser", report: Path) -> Iterator[Opened]:
    opened = Opened(browser, report, 1280, "light")
    yield opened
    opened.context.close()


def test_the_page_asks_for_nothing_complains_of_nothing_and_runs_nothing_of_a_server(
    look: Opened, report: Path
) -> None:
    look.page.evaluate("scrollTo(0, document.body.scrollHeight)")
    look.page.wait_for_load_state("networkidle")
    assert look.complaints == []
    assert look.requests == [report.as_uri()]
    assert look.page.title() == "Which server suits which endpoint? · velodrome"
    assert look.page.locator("img").count() == 0
    assert "<script>document.title" in look.page.locator("#proof").inner_html().replace("&lt;", "<").replace(
        "&gt;", ">"
    )


def test_nothing_sticks_out_sideways(look: Opened) -> None:
    for details in look.page.locator("details").all():
        details.evaluate("element => { element.open = true; }")
    assert look.page.evaluate("document.documentElement.scrollWidth") <= look.page.evaluate("innerWidth")


def test_the_verdict_is_seen_first_without_scrolling(look: Opened) -> None:
    best = look.page.locator(".card .best").first
    end = best.evaluate("element => element.getBoundingClientRect().bottom")
    assert best.inner_text() == "granian · rsgi"
    assert end < 500
    for section in ("ranking", "latency", "cost", "time", "why", "proof"):
        top = look.page.locator(f"#{section}").evaluate("element => element.getBoundingClientRect().top")
        assert top > end


def test_text_in_figures_can_be_read_at_any_width(look: Opened) -> None:
    sizes = look.page.evaluate(
        "[...document.querySelectorAll('figure svg[role=img] text')].filter(t => t.getClientRects().length)"
        ".map(t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)"
    )
    assert len(sizes) > 100
    assert min(sizes) >= 9


def test_figures_take_their_colours_from_the_scheme(look: Opened) -> None:
    label = look.page.locator("#ranking svg text").first.evaluate("text => getComputedStyle(text).fill")
    paper = look.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (label, paper) in MUTED_ON_PAPER


def test_latency_switches_between_due_and_sent(wide: Opened) -> None:
    due, sent = wide.page.locator("#latency div.due").first, wide.page.locator("#latency div.sent").first
    assert (due.is_visible(), sent.is_visible()) == (True, False)
    wide.page.get_by_text("from when sent", exact=True).click()
    assert (due.is_visible(), sent.is_visible()) == (False, True)
    assert wide.page.locator("#latency table.sent").first.is_visible()


def test_a_click_on_a_heading_sorts_by_value_and_a_second_one_turns_it_around(wide: Opened) -> None:
    heading = wide.page.locator("#raw th", has_text="requests/s")
    column = wide.page.locator("#raw tbody tr td:nth-child(5)")

    def values() -> list[float]:
        shown = (text.replace(" ", "").strip("\u2007\u2008 ") for text in column.all_inner_texts())
        return [float(text) for text in shown if text != "–"]

    heading.locator("button").click()
    rising = values()
    assert rising == sorted(rising)
    assert heading.get_attribute("aria-sort") == "ascending"
    assert column.last.inner_text().startswith("–"), "what is missing goes last"
    heading.locator("button").click()
    assert values() == sorted(rising, reverse=True)
    assert column.last.inner_text().startswith("–")


def test_the_command_line_is_copied_with_one_click(wide: Opened) -> None:
    wide.context.grant_permissions(["clipboard-read", "clipboard-write"])
    card = wide.page.locator(".card").first
    card.locator(".copy").click()
    playwright.expect(card.locator(".copy")).to_have_text("copied")
    copied = wide.page.evaluate("navigator.clipboard.readText()")
    assert copied == verdict().answers[0].deploy == card.locator("code").inner_text()


def test_the_table_is_taken_away_as_csv_that_no_spreadsheet_runs(wide: Opened) -> None:
    with wide.page.expect_download() as waiting:
        wide.page.locator("#csv").click()
    rows = list(csv.DictReader(Path(waiting.value.path()).read_text(encoding="utf-8").splitlines()))
    assert waiting.value.suggested_filename == "first-lap.csv"
    assert len(rows) == len(made_up.results())
    assert float(rows[0]["requests/s"]) == made_up.results()[0].load.throughput_rps  # type: ignore[union-attr]
    assert not [value for row in rows for value in row.values() if value.startswith(("=", "+", "@"))]


def test_a_link_to_a_cell_opens_it(wide: Opened, report: Path) -> None:
    cell = wide.page.locator("#cell-third-party-socketserver")
    assert not cell.evaluate("element => element.open")
    wide.page.goto(f"{report.as_uri()}#cell-third-party-socketserver")
    playwright.expect(cell.locator("pre").first).to_be_visible()
    assert "velodrome run first-lap --only third-party/socketserver" in cell.inner_text()


def test_on_paper_everything_is_open_and_the_ground_is_white(browser: "Browser", report: Path) -> None:
    opened = Opened(browser, report, 800, "dark")
    opened.page.emulate_media(media="print", color_scheme="dark")
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.page.locator("details:not([open])").count() == 0
    assert not opened.page.locator(".copy").first.is_visible()
    label = opened.page.locator("#ranking svg text").first.evaluate("text => getComputedStyle(text).fill")
    line = opened.page.locator("#latency .swatch path").first.evaluate(
        "path => getComputedStyle(path).stroke"
    )
    assert (label, line) == ("rgb(68, 68, 68)", "rgb(0, 101, 168)"), "dark on white, whatever the screen had"
    opened.context.close()
