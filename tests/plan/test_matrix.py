"""Blocks in an order drawn from the seed, the same for ever."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.made import KNOWN, STACKS

from velodrome.model.errors import NothingSelectedError
from velodrome.model.study import matches
from velodrome.plan.matrix import lay_out, narrow, order
from velodrome.plan.study_file import parse

STUDY = parse(
    """
blocks = 3
seed = 4711
limits = {cpus = 1}
contestants = ["uvicorn", {stack = "gunicorn-sync", workers = 2}, "picky"]
[[questions]]
recipe = "hello"
loads = [{connections = 4, duration = 1}, {rate = 10, duration = 1}]
[[questions]]
name = "third"
recipe = "third-party-200ms"
loads = [{connections = 4, duration = 1}]
""",
    "made.toml",
    KNOWN,
)
ORDERS = [[3, 0, 2, 5, 1, 4], [1, 0, 3, 5, 2, 4], [1, 2, 3, 5, 0, 4]]


def cells(*only: str) -> list[str]:
    return [session.trials[0].cell for session in lay_out(STUDY, STACKS, only).sessions]


def test_every_block_holds_every_cell_once_and_none_begins_early() -> None:
    sessions = lay_out(STUDY, STACKS).sessions
    assert [session.trials[0].block for session in sessions] == [0] * 5 + [1] * 5 + [2] * 5
    for block in range(3):
        assert set(
            Counter(
                session.trials[0].cell for session in sessions if session.trials[0].block == block
            ).values()
        ) == {1}


def test_one_boot_carries_the_loads_of_its_question_in_order() -> None:
    session = next(
        session for session in lay_out(STUDY, STACKS).sessions if session.trials[0].cell == "hello/uvicorn"
    )
    assert [trial.load.label for trial in session.trials] == ["closed-4", "open-10"]
    assert session.trials[0].key == "hello/uvicorn/closed-4/0"
    assert session.trials[0].limits.cpus == 1


def test_what_a_stack_cannot_serve_is_left_out_with_the_reason() -> None:
    (left,) = lay_out(STUDY, STACKS).left_out
    assert (left.cell, left.reason) == ("third/picky", "it calls nobody")


def test_the_order_of_a_stored_seed_never_changes() -> None:
    # Written down on Python 3.11; any other version has to agree, or stored seeds would mean other races.
    assert [order(4711, block, 6) for block in range(3)] == ORDERS


def test_blocks_and_seeds_have_orders_of_their_own() -> None:
    assert len({tuple(order(seed, block, 20)) for seed in range(3) for block in range(3)}) == 9


@given(st.integers(0, 2**63), st.integers(0, 999), st.integers(0, 60))
def test_an_order_holds_everything_once(seed: int, block: int, count: int) -> None:
    assert sorted(order(seed, block, count)) == list(range(count))


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("hello/uvicorn", {"hello/uvicorn"}),
        ("third", {"third/uvicorn", "third/gunicorn-sync[workers=2]"}),
        ("*/gunicorn-sync[workers=2]", {"hello/gunicorn-sync[workers=2]", "third/gunicorn-sync[workers=2]"}),
        ("*/gunicorn*", {"hello/gunicorn-sync[workers=2]", "third/gunicorn-sync[workers=2]"}),
        ("h*", {"hello/uvicorn", "hello/gunicorn-sync[workers=2]", "hello/picky"}),
    ],
)
def test_only_takes_names_and_patterns(pattern: str, found: set[str]) -> None:
    assert set(cells(pattern)) == found


def test_a_filtered_race_keeps_the_order_of_the_whole() -> None:
    assert cells("hello", "third/uvicorn") == [
        cell for cell in cells() if matches(cell, "hello") or cell == "third/uvicorn"
    ]


def test_a_filtered_race_is_a_study_of_what_it_runs() -> None:
    small = narrow(STUDY, lay_out(STUDY, STACKS, ("third/gunicorn*",)))
    assert [question.name for question in small.questions] == ["third"]
    assert [contestant.label for contestant in small.contestants] == ["gunicorn-sync[workers=2]"]
    assert narrow(STUDY, lay_out(STUDY, STACKS)) == STUDY


def test_a_pattern_that_matches_nothing_names_the_nearest() -> None:
    with pytest.raises(NothingSelectedError, match=r"'hello/uvcorn' matches no .* Nearest: hello/uvicorn"):
        cells("hello/uvicorn", "hello/uvcorn")


def test_an_interpreter_is_part_of_every_trial() -> None:
    sessions = lay_out(STUDY, STACKS, python="3.13").sessions
    assert {trial.python for session in sessions for trial in session.trials} == {"3.13"}
