"""Claims read well in every report: published beside measured, judgement in words, reason below."""

from collections.abc import Callable

import pytest
from tests.report import made_up
from tests.report.made_up_claims import CLAIMS, with_claims
from tests.report.made_up_verdict import verdict

from velodrome.model.claim import Check, Checked, Figure, Judgement
from velodrome.report import claims, html, json, markdown, terminal


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_reads_well(width: int, golden: Callable[[str, str], None]) -> None:
    lines = [str(line).rstrip() for line in claims.lines(CLAIMS, width)]
    assert max(map(len, lines)) < width
    golden(f"claims-{width}.txt", "\n".join(lines) + "\n")


def test_the_terminal_reports_claims_last_and_experiments_before() -> None:
    lines = [str(line) for line in terminal.verdict_lines(with_claims(), {}, 80)]
    text = "\n".join(lines)
    assert " Experiment canary: No marker was lost <b>." in lines
    assert text.index("Experiment canary") < text.index(" 1 holds, 1 does not hold here, 2 undecided")
    assert "Claims" not in "\n".join(str(line) for line in terminal.verdict_lines(verdict(), {}, 80))


def test_the_markdown_has_them_in_a_table(golden: Callable[[str, str], None]) -> None:
    golden("claims.md", "\n".join(markdown.claims_section(with_claims())) + "\n")
    whole = markdown.text(with_claims())
    assert whole.index("## Claims") < whole.index("## Answers at once")
    assert "- **canary**: No marker was lost &lt;b&gt;." in whole
    assert "velodrome run first-lap --quick" in whole
    assert "## Claims" not in markdown.text(verdict())


def test_the_page_has_them_first_after_the_verdict_and_escapes_what_was_found() -> None:
    page = html.render(with_claims(), made_up.results(), made_up.HEADER)
    assert page.index('id="verdict"') < page.index('id="claims"') < page.index('id="ranking"')
    assert "Deadline&lt;b&gt;Exceeded&lt;/b&gt;" in page
    assert "<b>Exceeded" not in page
    assert '<span class="judgement fails">does not hold here</span>' in page
    assert 'id="claims"' not in html.render(verdict(), made_up.results(), made_up.HEADER)


def test_a_verdict_with_claims_is_read_back_as_it_was(tmp_path: object) -> None:
    assert json.document(with_claims())["claims"][0]["judgement"] == "does not hold here"


@pytest.mark.parametrize(
    ("check", "about"),
    [
        (Check(Figure("p99_ms", "q/a"), None, 1, None), "latency from due, 99 %, q/a"),
        (
            Check(Figure("cpu_us", "q/a"), Figure("cpu_us", "q/b"), 1, None),
            "server CPU per correct response, q/a over q/b",
        ),
        (
            Check(Figure("cpu_us", "q/a", "closed-4-idle950"), Figure("cpu_us", "q/a", "closed-4"), 1, None),
            "server CPU per correct response, q/a (closed-4-idle950 over closed-4)",
        ),
        (
            Check(Figure("thread_us", experiment="switch"), Figure("task_us", experiment="switch"), 1, None),
            "switch: thread_us over task_us",
        ),
    ],
)
def test_a_check_without_words_is_described_by_its_figures(check: Check, about: str) -> None:
    (row,) = claims.show_claim(
        CLAIMS[2].__class__(CLAIMS[2].claim, Judgement.HOLDS, (Checked(check, Judgement.HOLDS, None),), "")
    ).rows
    assert row.about == about
