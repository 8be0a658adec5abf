from collections.abc import Callable

import pytest
from tests.report.made_up_diff import diff, hostile

from velodrome.model.difference import Diff
from velodrome.report import differences


def shown(what: Diff, width: int) -> str:
    return "".join(f"{line.plain.rstrip()}\n" for line in differences.lines(what, width))


@pytest.mark.parametrize("width", [120, 70])
def test_a_diff_reads_well(width: int, golden: Callable[[str, str], None]) -> None:
    golden(f"diff-{width}.txt", shown(diff(), width))


def test_the_answer_is_last_where_eyes_are() -> None:
    lines = shown(diff(), 200).splitlines()
    assert lines[-3] == " ✗ Regression"
    assert lines[-2].startswith("   Regression: p99 of uvicorn · uvloop +")


def test_no_line_is_wider_than_the_terminal() -> None:
    assert max(map(len, shown(diff(), 60).splitlines())) <= 64


def test_text_of_others_cannot_control_the_terminal() -> None:
    assert "\x1b" not in shown(hostile(), 120)
    assert "\u202e" not in shown(hostile(), 120)
