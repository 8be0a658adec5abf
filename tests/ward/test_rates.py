"""What is counted of the rows of a ward."""

from typing import Any

import pytest
from tests.ward.cells import ELSEWHERE, Cell, elsewhere
from tests.ward.run import every_cell, rate_line, rates

from velodrome.guest import catalog

pytestmark = pytest.mark.unit
CELLS = (
    Cell("tokens", "tokens:severe", "thread-tokens"),
    Cell("blocking, mild", "blocking:mild", "blocking-call"),
    Cell("two", "pairs:severe", "blocking-call", "thread-tokens"),
    Cell("sync", "plain:waiting", "growth", beside=("slow-client",)),
    Cell("awaits", "sound:waiting"),
    Cell("decoy: a lock", "lookalikes:locked"),
)


def row(cell: str, right: bool, *causes: str, **more: Any) -> dict[str, Any]:
    return {"cell": cell, "right": right, "causes": causes, **more}


def test_each_rate_is_of_the_rows_that_it_is_about() -> None:
    rows = [
        row("tokens", True, "thread-tokens", "gc-pause"),
        row("blocking, mild", False),
        row("two", True, "blocking-call", "thread-tokens"),
        row("sync", True, "growth", "slow-client"),
        row("awaits", True),
        row("decoy: a lock", False, "blocking-call"),
    ]
    assert rates(rows, CELLS) == [
        ("severe faults found first", 2, 2),
        ("mild faults found first", 0, 1),
        ("healthy apps, cured twins and decoys accused", 1, 2),
        ("wrong second causes on ill apps", 1, 4),
        ("both of two faults found", 1, 1),
    ]


def test_rows_without_a_finding_of_no_cell_or_of_one_fault_alone_count_nowhere() -> None:
    rows = [
        row("tokens", False, error="it does not start"),
        row("of another day", False, "gc-pause"),
        row("tokens", True, "thread-tokens", only=["thread-tokens"]),
    ]
    assert all(of == 0 for _, _, of in rates(rows, CELLS))


def test_a_rate_has_its_interval() -> None:
    assert rate_line("found", 19, 20) == "found: 19 of 20, 95% [76%, 99%]"
    assert rate_line("found", 0, 0) == "found: none examined"


def test_a_fault_of_an_app_is_looked_for_on_every_stack_and_that_of_a_setting_on_its_own() -> None:
    everywhere = every_cell(every_stack=True)
    assert len({cell.name for cell in everywhere}) == len(everywhere) > 2 * len(every_cell(every_stack=False))
    assert not [*elsewhere(Cell("a setting", "sound:waiting", "nodelay", knobs={"workers": 2}))]
    stacks = catalog.stacks(())
    for own, others in ELSEWHERE.items():
        assert {stacks[other].interface for other in others} == {stacks[own].interface}
        assert own not in others
