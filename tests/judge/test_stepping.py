"""Up to which rate a server kept up, read from the steps of a schedule."""

from dataclasses import replace

from tests.judge import made

from velodrome.judge import standings
from velodrome.model import results
from velodrome.model.load import Load, Schedule, Step
from velodrome.model.measurement import UNKNOWN_LATENCY, LoadStep, Measurement
from velodrome.model.verdict import LatencyView
from velodrome.report import html, markdown, verdict_tables


def step(rate: float, answered: float, p99: float | None = 5.0, ok: int | None = None) -> LoadStep:
    due = replace(UNKNOWN_LATENCY, p50=1.0, p99=p99, mean=1.0)
    requests = round(rate * 2)
    right = requests if ok is None else ok
    return LoadStep(rate / 50, 2.0, rate, rate, requests, right, answered, due, due, 0.1)


SCHEDULED = Load(Schedule((Step(100, 2.0), Step(200, 2.0))), 4.0)
QUESTION = replace(made.HELLO_Q, loads=(made.CLOSED, SCHEDULED))


def measured(*steps: LoadStep, name: str = "uvicorn", load: Load = SCHEDULED) -> Measurement:
    measurement = made.measured(made.trial(name, QUESTION, load=load), 100.0)
    return replace(measurement, load=replace(measurement.load, steps=steps))


def view(*steps: LoadStep) -> LatencyView:
    return replace(
        LatencyView("schedule", None, None, None, None, None, 0.0, 0, 0, (), ()),
        steps=standings.step_views([measured(*steps)]),
    )


def test_a_step_is_kept_up_with_when_what_fell_due_in_it_was_answered_in_it() -> None:
    found = standings.step_views([measured(step(100, 99), step(200, 199.4), step(300, 280), step(400, 285))])
    assert [row.kept_up for row in found] == [True, True, False, False]
    assert standings.kept_up_to(found) == 200


def test_what_is_inside_more_at_a_higher_rate_is_no_loss() -> None:
    def waiting(rate: float, answered: float, p50_ms: float) -> LoadStep:
        return replace(step(rate, answered), sent=replace(UNKNOWN_LATENCY, p50=p50_ms))

    first = waiting(100, 90, 200.0)
    assert [row.kept_up for row in standings.step_views([measured(first, waiting(200, 190, 210.0))])] == [
        True,
        True,
    ]
    assert not standings.step_views([measured(waiting(100, 90, 1.0))])[0].kept_up
    queue = [
        row.kept_up
        for row in standings.step_views([measured(first, waiting(200, 100, 3000.0)), measured(first, first)])
    ]
    assert queue == [True, False], "the time in a queue excuses nothing"
    assert not standings.step_views([measured(waiting(100, 40, 5000.0))])[0].kept_up


def test_blocks_are_reported_by_their_bounds_and_each_has_to_keep_up() -> None:
    first, second = measured(step(100, 100, p99=5.0)), measured(step(100, 60, p99=900.0, ok=150))
    [found] = standings.step_views([first, second])
    assert (found.p99_ms, found.achieved_rps, found.errors, found.kept_up) == ((5.0, 900.0), 80, 50, False)
    [half] = standings.step_views([first, measured(step(100, 100, p99=None))])
    assert half.p99_ms is None


def test_only_steps_that_all_blocks_came_to_are_reported() -> None:
    short = measured(step(100, 100))
    assert len(standings.step_views([measured(step(100, 100), step(200, 200)), short])) == 1
    assert standings.step_views([]) == standings.step_views([measured()]) == ()


def test_a_schedule_is_reported_in_one_sentence() -> None:
    found = {
        "slow": view(step(100, 50), step(200, 50)),
        "some": view(step(100, 100), step(200, 150)),
        "quick": view(step(100, 100), step(200, 200)),
    }
    assert standings.steps_sentence(SCHEDULED, found) == [
        "As the rate went from 100 to 200/s, these kept up with it: quick up to the end; some up to 100/s; "
        "slow from the beginning not"
    ]
    assert standings.steps_sentence(SCHEDULED, {}) == []
    assert standings.steps_sentence(made.CLOSED, found) == []


def test_an_answer_says_it_and_reports_have_a_table() -> None:
    trials = [
        *made.steady("uvicorn", [2000, 2100, 2010], QUESTION),
        measured(step(100, 100), step(200, 150)),
        *made.steady("granian", [4000, 4100, 4010], QUESTION),
        measured(step(100, 100), step(200, 200), name="granian"),
    ]
    verdict = made.verdict([*trials], QUESTION)
    [answer] = verdict.answers
    assert any(
        reason.startswith("As the rate went from 100 to 200/s, these kept up with it: granian")
        for reason in answer.why
    )
    [table] = verdict_tables.step_tables(answer)
    assert table.load == "open loop, 100 to 200/s in 4s"
    assert [(row[0] != "", row[2], row[-1]) for row in table.rows] == [
        (True, "100", ""),
        (False, "200", ""),
        (True, "100", ""),
        (False, "200", "fell behind"),
    ]
    shown = markdown.text(verdict)
    assert "| at 4 s | 200 | 150 | 1.00 | 5.00 | 0 | fell behind |" in shown
    page = html.render(verdict, trials, {})
    assert "As the rate changed" in page


def test_steps_and_schedules_are_stored_and_read_again() -> None:
    measurement = measured(step(100, 100), step(200, 150))
    header = made.results([measurement], (QUESTION,)).header
    text = f"{results.dump_header(header)}\n{results.dump(measurement)}\n"
    found = results.parse(text.encode())
    assert found.header.study.questions == (QUESTION,)
    assert found.trials == (measurement,)
