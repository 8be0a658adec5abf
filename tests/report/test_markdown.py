from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.report.made_up_verdict import verdict

from velodrome.model.errors import OutputError
from velodrome.report import markdown
from velodrome.report.typeset import markdown_escaped


def test_the_report_reads_well_in_a_pull_request(golden: Callable[[str, str], None]) -> None:
    golden("report.md", markdown.text(verdict()))


def test_the_verdict_comes_before_anything_else() -> None:
    lines = markdown.text(verdict()).splitlines()
    assert lines[2] == "- **Answers at once, 84 bytes** → **granian · rsgi**"


def test_text_of_a_server_is_neither_markup_nor_html_nor_a_mention() -> None:
    hostile = (
        "<script>x</script> [click](http://x) @everyone | #12 `code` **b** _i_ ~~s~~ $m$ \\ \x1b\n# head"
    )
    shown = markdown_escaped(hostile)
    assert "<" not in shown
    assert "\n" not in shown
    assert "@everyone" not in shown
    for letter in "[]`*_|#~$":
        assert f"\\{letter}" in shown
        assert not any(a == letter and b != "\\" for b, a in pairwise(shown))


def test_a_command_with_backticks_stays_in_its_block() -> None:
    judged = verdict()
    first = replace(judged.answers[0], deploy="python -c '```'")
    text = markdown.text(replace(judged, answers=(first,)))
    assert "````sh\npython -c '```'\n````" in text


def test_a_report_that_cannot_be_written_says_where_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "report.md").mkdir()
    with pytest.raises(OutputError, match=r"cannot write .*report\.md"):
        markdown.write(tmp_path / "report.md", verdict())
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]
