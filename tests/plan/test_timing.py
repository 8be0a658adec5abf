"""The time a race will take is reported before it is run."""

import pytest
from tests.plan.made import KNOWN, STACKS

from velodrome.guest import catalog
from velodrome.plan.findings import Known
from velodrome.plan.matrix import LOAD_S, START_S, STOP_S, lay_out, race_s, session_s
from velodrome.plan.study_file import load_study, parse


def length_s(contestant: str, recipe: str, loads: str) -> float:
    text = (
        f'blocks = 1\ncontestants = [{contestant}]\n[[questions]]\nrecipe = "{recipe}"\nloads = [{loads}]\n'
    )
    (session,) = lay_out(parse(text, "made.toml", KNOWN), STACKS).sessions
    return session_s(session, STACKS) - START_S - STOP_S


@pytest.mark.parametrize(
    ("contestant", "recipe", "loads", "seconds"),
    [
        ('"uvicorn"', "hello", '{connections = 4, duration = 1, warmup = "0.5s"}', 1.5 + LOAD_S),
        ('"uvicorn"', "hello", "{connections = 4, duration = 1}, {rate = 9, duration = 2}", 3 + 2 * LOAD_S),
        ('"uvicorn"', "third-party-200ms", "{connections = 40, duration = 2}", 2.2 + LOAD_S),
        (
            '{stack = "gunicorn-sync", workers = 2}',
            "third-party-200ms",
            "{connections = 40, duration = 2}",
            4 + LOAD_S,
        ),
        (
            '{stack = "gunicorn-sync", workers = 2}',
            "third-party-200ms",
            "{connections = 5, duration = 2}",
            2.5 + LOAD_S,
        ),
        (
            '{stack = "gunicorn-sync", workers = 2}',
            "third-party-200ms",
            "{rate = 100, duration = 2}",
            4 + LOAD_S,
        ),
        (
            '{stack = "gunicorn-sync", workers = 2}',
            "third-party-200ms",
            "{rate = 5, duration = 2}",
            2.2 + LOAD_S,
        ),
    ],
)
def test_a_load_takes_its_spans_and_what_is_still_inside(
    contestant: str, recipe: str, loads: str, seconds: float
) -> None:
    assert length_s(contestant, recipe, loads) == pytest.approx(seconds)


def test_the_first_lap_has_three_questions_ten_stacks_and_fits_into_its_minutes() -> None:
    stacks = catalog.stacks()
    study = load_study("first-lap", Known(stacks, catalog.recipes()))
    matrix = lay_out(study, stacks)
    assert [question.name for question in study.questions] == ["hello", "third-party", "upload"]
    assert len(study.contestants) == 10
    assert study.limits.cpus == 1
    assert not matrix.left_out
    assert all(
        {load.pace.kind for load in question.loads} == {"closed", "open"} for question in study.questions
    )
    assert race_s(matrix.sessions, stacks) <= 270
