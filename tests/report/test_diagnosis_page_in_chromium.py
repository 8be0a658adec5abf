"""The page of an examination as a reader sees it: in Chromium, on a wide screen and a phone, in light and in dark."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.report.made_up_doctor import hostile, ill
from tests.report.opened import ARGUMENTS, CHROMIUM, LOOKS, Opened, playwright

from velodrome.report.diagnosis_page import write

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.integration,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on PATH: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("doctor") / "doctor.html"
    write(path, ill())
    return path


@pytest.fixture(params=LOOKS, ids=lambda look: f"{look[0]}-{look[1]}")
def look(request: pytest.FixtureRequest, browser: "Browser", page: Path) -> Iterator[Opened]:
    opened = Opened(browser, page, *request.param)
    yield opened
    opened.context.close()


def test_it_asks_for_nothing_complains_of_nothing_and_nothing_sticks_out(look: Opened, page: Path) -> None:
    look.page.wait_for_load_state("networkidle")
    assert look.complaints == []
    assert look.requests == [page.as_uri()]
    for details in look.page.locator("details").all():
        details.evaluate("element => { element.open = true; }")
    assert look.page.evaluate("document.documentElement.scrollWidth") <= look.page.evaluate("innerWidth")


def test_the_costliest_cause_is_seen_without_scrolling(look: Opened) -> None:
    best = look.page.locator(".card .best").first
    assert best.inner_text() == "blocking-call"
    assert best.evaluate("element => element.getBoundingClientRect().bottom < 0.75 * innerHeight")


def test_text_in_figures_can_be_read_at_any_width_and_stays_within_them(look: Opened) -> None:
    sizes = look.page.evaluate(
        "[...document.querySelectorAll('svg[role=img] text')]"
        ".map(t => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)"
    )
    assert len(sizes) > 30
    assert min(sizes) >= 9
    beyond = look.page.evaluate(
        "[...document.querySelectorAll('svg[role=img] text')].filter(t => {"
        "const own = t.getBoundingClientRect(), all = t.ownerSVGElement.getBoundingClientRect();"
        "return own.left < all.left - 1 || own.right > all.right + 1 || own.bottom > all.bottom + 1;})"
        ".map(t => t.textContent)"
    )
    assert beyond == []


def test_nothing_of_a_hostile_app_runs(browser: "Browser", tmp_path: Path) -> None:
    write(tmp_path / "hostile.html", hostile())
    opened = Opened(browser, tmp_path / "hostile.html", 1280, "light")
    assert opened.complaints == []
    assert opened.page.locator("script").count() == 0
    opened.context.close()
