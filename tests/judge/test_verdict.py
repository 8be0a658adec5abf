"""From made-up results to a verdict on the whole study."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.judge.made import (
    CLOSED,
    FAST,
    HELLO_Q,
    INVALID,
    MACHINE,
    NOTE,
    OPEN,
    SHORT,
    SLOW,
    SPOILT_ITSELF,
    STACKS,
    STOLEN,
    THIRD_Q,
    failed,
    measured,
    results,
    steady,
    trial,
    verdict,
)

from velodrome.judge.verdict import judge
from velodrome.model.app import App
from velodrome.model.measurement import Failed, FailureKind, Measurement
from velodrome.model.study import Question
from velodrome.model.trial import Contestant
from velodrome.model.verdict import Outcome
from velodrome.report import markdown
from velodrome.report.terminal import repeat, verdict_lines


def test_a_note_is_shown_and_changes_nothing() -> None:
    found = verdict([*FAST, *steady("uvicorn", [5000] * 3, flags=[NOTE])])
    assert found.answers[0].best == ("uvicorn",)
    assert found.set_aside == ()
    assert "One worker did 91 % of the work." in found.answers[0].standings[0].notes[0]


@pytest.mark.parametrize("torn", [False, True])
def test_half_a_line_that_a_crash_left_is_reported(torn: bool) -> None:
    found = judge([results(FAST), replace(results(SLOW), torn=torn)], STACKS)
    assert any("last line of the results is not whole" in note for note in found.notes) is torn


def test_that_one_block_is_short_is_not_repeated_because_blocks_are_merged() -> None:
    found = verdict([*FAST, *steady("uvicorn", [5000] * 3, flags=[SHORT])])
    assert found.answers[0].standings[0].notes == ()


def test_one_block_is_judged_by_the_known_noise_and_reported_as_one() -> None:
    near = verdict([*steady("granian", [1050]), *steady("uvicorn", [1000])], blocks=1)
    far = verdict([*steady("granian", [1500]), *steady("uvicorn", [1000])], blocks=1)
    assert near.answers[0].outcome is Outcome.CANNOT_TELL
    assert far.answers[0].outcome is Outcome.WINNER
    assert any(note.startswith("One block only") for note in far.notes)


def test_versions_that_an_app_s_packages_asked_for_are_reported() -> None:
    stack = replace(STACKS["gevent"], requires=("gunicorn==27.0.1", "gevent==26.9.0", "psutil==7.0.0"))
    app = App("shop:app", "wsgi", "/python", "/shop", packages={"gunicorn": "21.2.0", "greenlet": "3.1.1"})
    ran = {**app.packages, "gevent": "24.11.1", "psutil": "7.0.0"}
    measurement = replace(measured(replace(trial("gevent"), app=app), 100), packages=ran)
    notes = judge([results([measurement])], {stack.name: stack}).notes
    assert [note for note in notes if "as pinned here" in note] == [
        "gunicorn · gevent ran with gunicorn 21.2.0, which is installed beside the app, not 27.0.1 as pinned here.",
        "gunicorn · gevent ran with gevent 24.11.1, which goes with what the app has, not 26.9.0 as pinned here.",
    ]


def test_a_revision_of_an_app_tells_no_command_that_could_not_repeat_it() -> None:
    app = App("shop:app", "wsgi", "/python", "/worktree", revision="HEAD~1")
    question = replace(HELLO_Q, app=app)
    found = verdict(
        [replace(measurement, trial=replace(measurement.trial, app=app)) for measurement in FAST], question
    )
    (standing,) = found.answers[0].standings
    assert standing.again is None
    assert repeat(found, found.answers[0], standing) == ""
    assert "Repeat one cell" not in markdown.text(found)


def test_an_interrupted_race_says_how_far_it_came() -> None:
    assert verdict([*FAST[:2], *SLOW[:1]]).finished == "before its end: 3 of 12 trials are there"
    closed_only = Question("hello", HELLO_Q.recipe, (CLOSED,))
    assert verdict([*FAST, *SLOW], closed_only).finished == "all 3 blocks were run"
    begun_with_two = verdict([*FAST, *SLOW], closed_only, blocks=2)
    assert begun_with_two.finished == "all 3 blocks were run"


def test_how_it_ended_is_taken_over_where_it_is_known() -> None:
    assert (
        judge([results(SLOW)], STACKS, "the budget of 5 min was spent").finished
        == "the budget of 5 min was spent"
    )


def test_questions_not_run_and_pairs_left_out_are_reported() -> None:
    contestants = [Contestant("uvicorn"), Contestant("picky")]
    trials = steady("uvicorn", [197, 198, 196], THIRD_Q)
    found = judge([results(trials, [HELLO_Q, THIRD_Q], contestants)], STACKS)
    assert [answer.question for answer in found.answers] == ["third-party"]
    assert "hello: nothing of it was run." in found.notes
    assert "picky left out of third-party: it calls nobody." in found.notes


def test_results_of_stacks_nobody_knows_any_more_are_judged_all_the_same() -> None:
    found = judge(
        [results([*steady("gone", [100] * 3, THIRD_Q), *steady("lost", [50] * 3, THIRD_Q)], [THIRD_Q])], {}
    )
    assert found.answers[0].best == ("gone",)
    assert (found.answers[0].standings[0].title, found.answers[0].standings[0].ceiling) == ("gone", "")


def test_blocks_of_several_files_of_one_machine_add_up() -> None:
    again = results([*FAST, *SLOW], machine={**MACHINE, "python": "3.12"})
    found = judge([results([*FAST, *SLOW]), again], STACKS)
    assert [row.blocks_valid for row in found.answers[0].standings] == [6, 6]


def test_no_file_is_no_verdict() -> None:
    with pytest.raises(ValueError, match="at least one"):
        judge([], STACKS)


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["uvicorn", "granian", "gevent", "sync"]),
            st.integers(0, 3),
            st.sampled_from([HELLO_Q, THIRD_Q]),
            st.sampled_from([CLOSED, OPEN]),
            st.one_of(st.none(), st.floats(0, 1e5)),
            st.sampled_from([(), (STOLEN,), (NOTE,), (INVALID,), (SPOILT_ITSELF,)]),
        ),
        min_size=1,
        max_size=30,
        unique_by=lambda row: (row[0], row[1], row[2].name, row[3].label),
    )
)
def test_whatever_is_left_of_a_race_gets_a_verdict(rows: list[tuple]) -> None:  # type: ignore[type-arg]
    trials: list[Measurement | Failed] = []
    for name, block, question, load, rps, flags in rows:
        of = trial(name, question, block, load)
        trials.append(failed(of) if rps is None else measured(of, rps, flags=flags, latencies_ms=[1.0, 2.0]))
    found = judge([results(trials, [HELLO_Q, THIRD_Q])], STACKS)
    for answer in found.answers:
        first = {row.contestant for row in answer.standings if row.rank == 1}
        # One too noisy to be told apart from those who reach all that the load allows is first, and not recommended.
        assert set(answer.best) <= first
        # One alone that does not keep up with its load is first, and not recommended either.
        assert answer.best or len([row for row in answer.standings if row.rank is not None]) <= 1
        for row in answer.standings:
            if row.rank is not None:
                assert row.rank == row.rank_low
                assert row.rank <= (row.rank_high or 0)
        if answer.outcome is not Outcome.CANNOT_TELL:
            best = next(row for row in answer.standings if row.contestant == answer.best[0])
            assert best.bound != "at most"
            assert best.blocks_valid == best.blocks_done or best.bound == "at least"
        assert answer.sentence.endswith(".")
        assert "nan" not in f"{answer}".lower().replace("granian", "")


FELL = (
    "INFO:     Waiting for application startup.",
    "",
    "ERROR:    db is down",
    f"ERROR:    {'x' * 300}",
    "ERROR:    Application startup failed. Exiting.",
)


def test_what_a_server_that_failed_wrote_at_last_is_told_once_and_in_short() -> None:
    fell = [
        replace(failed(trial("uvicorn", load=load, block=block), "it ended: exit 3"), last_lines=FELL)
        for load in (CLOSED, OPEN)
        for block in (0, 1)
    ]
    found = verdict([*FAST, *fell], blocks=2)
    assert len(found.set_aside) == 2
    first, second = found.set_aside
    assert first.count("db is down") == 1
    assert "Application startup failed" in first
    assert "Waiting for" not in first
    assert len(first) < 400
    assert "db is down" not in second
    assert "db is down" in markdown.text(found)
    shown = " ".join(line.plain for line in verdict_lines(found, {}, 120))
    assert "db is down" in " ".join(shown.split())


def test_the_lines_of_a_server_that_only_answered_wrongly_are_not_told() -> None:
    wrong = replace(failed(trial("uvicorn"), "status 404", FailureKind.WRONG_ANSWER), last_lines=FELL)
    assert "db is down" not in verdict([*FAST, wrong]).set_aside[0]
