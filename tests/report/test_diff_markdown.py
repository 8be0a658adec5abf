from collections.abc import Callable

from tests.report.made_up_diff import diff, hostile

from velodrome.report import differences


def test_a_comment_on_a_pull_request_reads_well(golden: Callable[[str, str], None]) -> None:
    golden("diff.md", differences.markdown_text(diff()))


def test_the_answer_is_first_and_all_figures_are_folded_away() -> None:
    lines = differences.markdown_text(diff()).splitlines()
    assert lines[0] == "### ✗ Regression"
    assert lines[2].startswith("Regression: p99 of uvicorn")
    folded = lines.index("<details><summary>All figures</summary>")
    assert [line.split("|")[1].strip() for line in lines[:folded] if line.startswith("| p")] == ["p99"]
    assert lines.count("</details>") == sum(line.startswith("<details>") for line in lines)


def test_broken_thresholds_stand_before_the_tables() -> None:
    text = differences.markdown_text(diff())
    assert text.index(r"p99 +50%: broken") < text.index("| figure |")


def test_text_of_others_is_neither_markup_nor_html() -> None:
    text = differences.markdown_text(hostile())
    assert "<script>" not in text
    assert "<img" not in text
    assert "\x1b" not in text
