"""The quick form measures the same in less time, and never so little that it means nothing."""

import pytest
from tests.plan.made import KNOWN, STACKS, problems, study, with_load

from velodrome.model.load import Closed, Load, Schedule, Step
from velodrome.model.study import Question
from velodrome.plan.matrix import lay_out
from velodrome.plan.study_file import parse, scale_load

TEXT = """\
contestants = ["uvicorn", {stack = "gunicorn-sync", workers = 2}]
blocks = 5
budget = "1h"
[quick]
blocks = 2
scale = 0.5
skip = ["hello/gunicorn-sync[[]workers=2]", "third"]
[[questions]]
recipe = "hello"
loads = [{connections = 4, duration = "8s", warmup = "1s"}, {connections = 9, requests = 10000}]
[[questions]]
name = "third"
recipe = "third-party-200ms"
loads = [{connections = 4, duration = "8s"}]
""".replace("[[]", "[")


def test_the_quick_form_is_shorter_and_leaves_out_what_it_says() -> None:
    full, quick = study(TEXT), parse(TEXT, "studies/mine.toml", KNOWN, quick=True)
    assert (full.form, full.blocks, quick.form, quick.blocks, quick.budget_s) == ("full", 5, "quick", 2, 3600)
    assert quick.questions[0].loads == (Load(Closed(4), 4, 0.5), Load(Closed(9), 60, requests=5000))
    cells = {session.trials[0].cell for session in lay_out(quick, STACKS).sessions}
    assert cells == {"hello/uvicorn"}
    assert len(lay_out(full, STACKS).sessions) == 20


def test_a_study_without_the_table_has_a_quick_form_too() -> None:
    quick = parse(with_load('{connections = 1, duration = "8s"}'), "mine.toml", KNOWN, quick=True)
    assert (quick.blocks, quick.questions[0].loads[0].duration_s) == (1, 2)


@pytest.mark.parametrize(
    ("recipe", "load", "duration_s", "requests"),
    [
        ("hello", Load(Closed(1), 1), 0.5, None),
        ("hello", Load(Closed(1), 0.3), 0.3, None),
        ("third-party-200ms", Load(Closed(1), 3), 1, None),
        ("hello", Load(Closed(1), 30, requests=100), 30, 100),
        ("hello", Load(Closed(1), 30, requests=1000), 30, 500),
        ("hello", Load(Closed(1), 30, requests=10_000), 30, 1000),
    ],
)
def test_no_load_becomes_too_short_to_mean_anything(
    recipe: str, load: Load, duration_s: float, requests: int | None
) -> None:
    found = scale_load(load, 0.1, Question("q", KNOWN.recipes[recipe], (load,)))
    assert (found.duration_s, found.requests) == (duration_s, requests)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("scale = 0", "quick.scale: 0 is not a factor; give a number above 0"),
        ("scale = 2", "quick.scale: 2 is not a factor"),
        ("blocks = 0", "quick.blocks: 0 is not a number of blocks"),
        (
            'skip = ["helo"]',
            "quick.skip[0]: 'helo' is no question, question/contestant, load of one, or experiment; nearest: hello",
        ),
        ("skip = [3]", "quick.skip[0]: 3 is not something to skip"),
        ("blocs = 1", "quick.blocs: there is no such key here; nearest: blocks"),
    ],
)
def test_a_bad_quick_form_is_reported_with_its_cure(table: str, sentence: str) -> None:
    found = problems(with_load("{connections = 1, duration = 1}") + f"[quick]\n{table}\n")
    assert len(found) == 1, found
    assert sentence in found[0]


def test_single_loads_can_be_left_out_too() -> None:
    text = TEXT.replace('"third"]', '"third", "hello/*/closed-4"]')
    quick = parse(text, "studies/mine.toml", KNOWN, quick=True)
    loads = {trial.load.label for session in lay_out(quick, STACKS).sessions for trial in session.trials}
    assert loads == {"closed-9-n5000"}


def test_a_schedule_in_little_comes_to_the_same_rates() -> None:
    load = Load(Schedule((Step(100, 4.0), Step(200, 4.0, 300))), 10.0, warmup_s=1.0)
    question = study(TEXT).questions[0]
    short = scale_load(load, 0.5, question)
    assert short.pace == Schedule((Step(100, 2.0), Step(200, 2.0, 300)))
    assert (short.duration_s, short.warmup_s) == (5, 0.5)
    least = scale_load(load, 0.001, question)
    assert isinstance(least.pace, Schedule)
    assert least.duration_s == 0.5
    assert least.pace.span_s == pytest.approx(0.4)
