"""Apps that are ill, their cured twins, healthy ones and decoys: what is wrong is found, and nobody else is accused."""

import os
import sys

import pytest
from tests.ward.cells import ILL, PAIRS, WELL, Cell
from tests.ward.run import examined, lacks, right

from velodrome.model.diagnosis import Ruling

pytestmark = [
    pytest.mark.measured,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2,
        reason="needs Linux and two CPUs, one for each side",
    ),
]


@pytest.mark.exhaustive
def test_a_blocking_call_is_named_by_its_line_and_proven_by_its_cure() -> None:
    cell = ILL[0]
    found = examined(cell, only=(cell.fault,), budget_s=60)
    (cause,) = found.causes
    assert cause.ruling is Ruling.CAUSE
    assert cause.proof == "cure"
    assert cell.line in str(cause.document()["evidence"])
    assert cause.effect["rps"].low > 0
    assert cause.cure is not None
    assert not found.healthy
    (arms,) = (evidence for evidence in cause.evidence if evidence.kind == "arms")
    assert len(arms.data["blocks"]) >= 4


@pytest.mark.exhaustive
@pytest.mark.parametrize("cell", ILL, ids=lambda cell: cell.name)
def test_what_is_wrong_is_the_first_cause(cell: Cell) -> None:
    if why := lacks(cell):
        pytest.skip(why)
    found = examined(cell)
    assert right(cell, found), found.text


@pytest.mark.exhaustive
@pytest.mark.parametrize("cell", PAIRS, ids=lambda cell: cell.name)
def test_two_faults_at_once_are_both_found(cell: Cell) -> None:
    found = examined(cell)
    assert right(cell, found), found.text


@pytest.mark.exhaustive
@pytest.mark.parametrize("cell", WELL, ids=lambda cell: cell.name)
def test_nothing_is_accused_of_an_app_that_is_well(cell: Cell) -> None:
    found = examined(cell)
    assert right(cell, found), found.text
