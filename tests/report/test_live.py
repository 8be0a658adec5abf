import io
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report import made_up
from tests.report.made_up_verdict import verdict

from velodrome.model.measurement import Flag, FlagKind, Measurement, Severity
from velodrome.report import terminal
from velodrome.report import terminal as board
from velodrome.report import terminal as live
from velodrome.report.terminal import RaceView

PATHS = {"report": "runs/2026-11-20-first-lap/report.html"}
CONTROL = re.compile(r"\x1b|\r|\x07")


def race(view: RaceView, until: int | None = None) -> None:
    """Tell a view the whole made-up race, or its first trials."""
    results = made_up.results()
    view.started(
        made_up.STUDY,
        placement=made_up.PLACEMENT,
        python="3.11.7",
        trials=len(results),
        seconds=240.0,
        called=made_up.CALLED,
    )
    view.preparing("installing waitress")
    for result in results[:until]:
        view.session_started(f"{result.trial.cell} {result.trial.load.label}", 120.0)
        view.finished(result)
    if until is None:
        view.verdict(verdict(), PATHS)


def test_in_a_pipe_every_trial_is_one_plain_line() -> None:
    stream = io.StringIO()
    with RaceView(stream) as view:
        race(view)
    text = stream.getvalue()
    assert not CONTROL.search(text)
    lines = [line for line in text.splitlines() if line.startswith("[")]
    assert len(lines) == len(made_up.results())
    assert lines[0].startswith("[  1/180] hello/granian-rsgi closed-40 block 1  ")
    assert "FAILED (start): waitress did not start" in text


def test_a_view_that_is_closed_twice_or_never_started_does_no_harm() -> None:
    with RaceView(io.StringIO()) as view:
        view.close()


def test_a_trial_that_is_run_again_replaces_what_was_measured_before() -> None:
    (result,) = (
        result for result in made_up.results() if result.trial.key == "hello/granian-rsgi/closed-40/0"
    )
    assert isinstance(result, Measurement)
    disturbed = replace(
        result, flags=(Flag(FlagKind.CPU_STEAL, Severity.INVALID, "The host took CPUs.", "Wait."),)
    )
    table = board.Board(made_up.STUDY, made_up.CALLED)
    table.add(disturbed)
    (before,) = (row for row in table.lines(made_up.STUDY.questions[0]) if row.remark)
    assert before.set_aside
    table.add(replace(result, flags=()))
    after = next(row for row in table.lines(made_up.STUDY.questions[0]) if row.cells[-1].startswith("1/"))
    assert after.cells[1]
    assert (after.remark, after.set_aside) == ("", False)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("height", [14, 24, 60])
def test_the_live_table_fits_any_screen(width: int, height: int) -> None:
    table = board.Board(made_up.STUDY, made_up.CALLED)
    for result in made_up.results()[:77]:
        table.add(result)
    lines = live.fit(table, "third-party/tornado closed-40", width, height)
    assert max(len(line.plain) for line in lines) <= width
    assert len(lines) <= height


def test_when_all_does_not_fit_the_question_that_runs_is_shown_and_the_others_by_their_leader() -> None:
    table = board.Board(made_up.STUDY, made_up.CALLED)
    for result in made_up.results()[:60]:
        table.add(result)
    text = "\n".join(line.plain for line in live.fit(table, "large/tornado closed-40", 100, 20))
    assert "Answers 220 kB · rate: closed-40" in text
    assert "Answers at once, 84 bytes: granian · rsgi  40 900" in text


def test_what_is_set_aside_shows_no_rate_that_could_be_believed() -> None:
    table = board.Board(made_up.STUDY, made_up.CALLED)
    for result in made_up.results():
        table.add(result)
    line = next(line for line in table.lines(made_up.QUESTIONS[1]) if "socketserver" in line.cells[0])
    assert line.set_aside
    assert line.cells[0].startswith("⚑")
    assert line.cells[1] == ""
    assert "listen queue overflowed 37 times" in line.remark


class Screen(io.StringIO):
    """A terminal that remembers all that was written to it."""

    def isatty(self) -> bool:
        return True


def in_a_terminal(environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a view writes to a terminal of 100 by 40."""
    for name in ("CI", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40", **environment}.items():
        monkeypatch.setenv(name, value)
    stream = Screen()
    with RaceView(stream) as view:
        race(view, until=90)
        view.close()
    return stream.getvalue()


def test_no_color_takes_away_colours_and_leaves_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    colour = re.compile(r"\x1b\[[\d;]*3[1-7]m")
    assert colour.search(in_a_terminal({}, monkeypatch))
    plain = in_a_terminal({"NO_COLOR": "1"}, monkeypatch)
    assert not colour.search(plain)
    assert "90/180 trials" in plain


@pytest.mark.parametrize("environment", [{"CI": "true"}, {"TERM": "dumb"}])
def test_a_terminal_nobody_looks_at_gets_plain_lines(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = in_a_terminal(environment, monkeypatch)
    assert "\x1b" not in written
    assert "[ 90/180]" in written


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_verdict_reads_well(width: int, golden: Callable[[str, str], None]) -> None:
    judged = verdict()
    lines = [*terminal.race_table(judged, width), "", *terminal.verdict_lines(judged, PATHS, width)]
    text = "\n".join(str(line).rstrip() for line in lines) + "\n"
    assert not CONTROL.search(text)
    # A command and a path are never broken: they are there to be copied.
    prose = [line for line in text.splitlines() if "deploy:" not in line and "repeat one cell" not in line]
    assert max(map(len, prose)) <= width
    golden(f"verdict-{width}.txt", text)


def test_a_cell_of_another_interpreter_is_repeated_with_it() -> None:
    judged = verdict()
    answer = judged.answers[0]
    standing = replace(answer.standings[0], contestant="gunicorn-sync[workers=2]@3.13", python="3.13")
    assert terminal.repeat(judged, answer, standing) == (
        "velodrome run first-lap --only 'hello/gunicorn-sync[workers=2]' --python 3.13"
    )


def test_a_contestant_of_its_own_versions_is_repeated_by_its_label() -> None:
    judged = replace(verdict(), form="quick")
    answer = judged.answers[0]
    standing = replace(answer.standings[0], contestant="tornado@3.7+tornado=5.1.1")
    assert terminal.repeat(judged, answer, standing) == (
        "velodrome run first-lap --only hello/tornado@3.7+tornado=5.1.1 --quick"
    )


def test_the_header_names_cpus_placement_python_seed_and_time() -> None:
    stream = io.StringIO()
    with RaceView(stream) as view:
        race(view, until=0)
    assert "2 CPUs: server on 0, load on 1 · Python 3.11.7 · seed 4711 · about 4 min" in stream.getvalue()


def test_goldens_hold_no_hostile_character() -> None:
    folder = Path(__file__).parents[1] / "golden"
    for path in folder.glob("*.txt"):
        assert all(letter.isprintable() or letter == "\n" for letter in path.read_text(encoding="utf-8")), (
            path
        )
