"""A study file is read whole, or all that is wrong with it is told at once with its place and its cure."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plan.made import RECIPES, STACKS

from velodrome.guest.recipe import Body, Sleep
from velodrome.model.errors import StudyFileError
from velodrome.model.limits import Limits
from velodrome.model.load import Closed, Load, Open
from velodrome.model.study import Study
from velodrome.model.trial import Contestant
from velodrome.plan.study_file import parse, read

GOOD = """\
title = "Which one?"
sources = ["https://example.org/"]
blocks = 5
seed = 7
budget = "10min"
limits = {cpus = 1, memory = "512MB"}
contestants = ["uvicorn", {stack = "gunicorn-sync", workers = 2}]

[[questions]]
recipe = "hello"
loads = [
  {connections = 40, duration = "1.5s", warmup = "300ms"},
  {rate = 500, arrivals = "poisson", connections = 200, duration = 2, timeout = "5s", drain = 0, keepalive=false},
]

[[questions]]
name = "naps"
loads = [{connections = 10, duration = "1s"}]
[questions.recipe]
steps = [{do = "sleep", ms = 50}, {do = "body", size = 84}]
"""
ONE = "{connections = 1, duration = 1}"


def study(text: str) -> Study:
    return parse(text, "studies/mine.toml", STACKS, RECIPES)


def problems(text: str) -> list[str]:
    with pytest.raises(StudyFileError) as caught:
        study(text)
    return [f"{one.line}:{one.column} {one.sentence}" for one in caught.value.problems]


def with_load(load: str) -> str:
    return f'contestants = ["uvicorn"]\n[[questions]]\nrecipe = "hello"\nloads = [{load}]\n'


def with_contestants(contestants: str) -> str:
    return f'contestants = {contestants}\n[[questions]]\nrecipe = "hello"\nloads = [{ONE}]\n'


def with_recipe(recipe: str) -> str:
    return f'contestants = ["uvicorn"]\n[[questions]]\nname = "q"\nrecipe = {recipe}\nloads = [{ONE}]\n'


def test_a_good_file_is_read_whole() -> None:
    found = study(GOOD)
    assert (found.name, found.title, found.blocks, found.seed, found.budget_s) == (
        "mine",
        "Which one?",
        5,
        7,
        600,
    )
    assert found.limits == Limits(1, 512_000_000)
    assert found.contestants == (Contestant("uvicorn"), Contestant("gunicorn-sync", {"workers": 2}))
    hello, naps = found.questions
    assert (hello.name, hello.recipe) == ("hello", RECIPES["hello"])
    assert hello.loads == (
        Load(Closed(40), 1.5, 0.3),
        Load(Open(500, "poisson", 200), 2, timeout_s=5, drain_s=0, keepalive=False),
    )
    assert (naps.recipe.name, naps.recipe.steps) == ("naps", (Sleep(50), Body(84)))
    assert naps.recipe.about == "sleeps 50 ms and answers 84 bytes"


def test_a_knob_at_its_default_is_no_other_contestant() -> None:
    assert study(with_contestants('[{stack = "uvicorn", workers = 1}]')).contestants == (
        Contestant("uvicorn"),
    )


def test_all_problems_are_told_at_once_in_the_order_of_the_file() -> None:
    text = """\
blocks = 0
contestnts = ["x"]
contestants = ["guvicorn", {stack = "uvicorn", wokers = 2, loop = "x"}, 5]
[[questions]]
recipe = "helo"
loads = [{connections = 40, duration = "2x"}, {rate = -5, duration = 1}]
[[questions]]
name = "own"
loads = []
recipe = {steps = [{do = "slep"}, {do = "sleep", ms = -1, size = 3}, {do = "body"}, 4]}
"""
    with pytest.raises(StudyFileError) as caught:
        study(text)
    lines = str(caught.value).splitlines()
    assert lines[0] == "studies/mine.toml has 15 problems; nothing was run"
    assert (
        "  line 6, column 48    questions[0].loads[1].rate: -5 is not a rate; give requests per second above 0"
        in lines
    )
    assert [line.split()[1].rstrip(",") for line in lines[1:]] == sorted(
        [line.split()[1].rstrip(",") for line in lines[1:]], key=int
    )
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("load", "sentence"),
    [
        (
            "{connections = 0, duration = 1}",
            "connections: 0 is not a number of connections; give a whole number from 1 to 60 000",
        ),
        ("{connections = 999999, duration = 1}", "connections: 999999 is not a number of connections"),
        ("{connections = true, duration = 1}", "connections: true is not a number of connections"),
        ("{connections = 4.5, duration = 1}", "connections: 4.5 is not a number of connections"),
        ("{connections = 4}", "duration: is missing; give one above 0"),
        ("{connections = 4, duration = 0}", "duration: 0 is not a span of time; give one above 0"),
        ('{connections = 4, duration = "-1s"}', "duration: '-1s' is not a span of time"),
        ("{connections = 4, duration = 1e300}", "duration: 1e+300 is not a span of time"),
        ("{rate = nan, duration = 1}", "rate: nan is not a rate"),
        ("{rate = inf, duration = 1}", "rate: inf is not a rate"),
        ("{rate = 0, duration = 1}", "rate: 0 is not a rate; give requests per second above 0"),
        ('{rate = "9", duration = 1}', "rate: '9' is not a rate"),
        ("{duration = 1}", "has neither connections nor rate"),
        (
            '{connections = 4, arrivals = "poisson", duration = 1}',
            "arrivals: belongs to an open loop; add rate",
        ),
        (
            '{rate = 4, arrivals = "bursty", duration = 1}',
            """arrivals: 'bursty' is not a kind of arrivals; give "constant" or""",
        ),
        (
            "{connections = 4, duration = 1, druation = 2}",
            "druation: there is no such key here; nearest: duration",
        ),
        ("5", "loads[0]: 5 is not a load; give a table such as"),
        (
            "{connections = 4, duration = 1}, {connections = 4, duration = 2}",
            "loads[1]: 'closed-4' is already loads[0]",
        ),
        ("", "loads: an empty list is not a list of loads"),
    ],
)
def test_a_bad_load_is_told_with_its_cure(load: str, sentence: str) -> None:
    found = problems(with_load(load))
    assert len(found) == 1, found
    assert sentence in found[0]
    assert found[0].startswith("4:")


@pytest.mark.parametrize(
    ("contestants", "sentence"),
    [
        ('["guvicorn"]', "contestants[0]: no stack is called 'guvicorn'; nearest: uvicorn"),
        ('["uvicorn", "uvicorn"]', "contestants[1]: 'uvicorn' is already contestants[0]; leave one out"),
        (
            '[{stack = "uvicorn", threads = 2}]',
            "contestants[0].threads: uvicorn has no such knob; known: loop, workers",
        ),
        ('[{stack = "uvicorn", workers = 0}]', "contestants[0].workers: 0 is not a count"),
        ('[{stack = "uvicorn", workers = true}]', "contestants[0].workers: true is not a count"),
        (
            '[{stack = "uvicorn", loop = "uvlop"}]',
            "contestants[0].loop: 'uvlop' is not a choice of uvicorn; give one of: uvloop, asyncio",
        ),
        ("[{workers = 2}]", "contestants[0].stack: is missing"),
        ("[]", "contestants: an empty list is not a list of contestants"),
        ('"uvicorn"', "contestants: 'uvicorn' is not a list of contestants"),
        ("[[]]", "contestants[0]: an empty list is not a contestant"),
    ],
)
def test_a_bad_contestant_is_told_with_its_cure(contestants: str, sentence: str) -> None:
    found = problems(with_contestants(contestants))
    assert len(found) == 1, found
    assert sentence in found[0]


@pytest.mark.parametrize(
    ("recipe", "sentence"),
    [
        ('"helo"', "recipe: no recipe is called 'helo'; nearest: hello. All: velodrome recipes"),
        ("7", "recipe: 7 is not a recipe; give the name of one"),
        ("{}", "recipe: has neither name nor steps"),
        ('{name = "hello", method = "POST"}', "recipe.method: a recipe that ships is taken as it is"),
        ('{steps = [{do = "sleep", ms = 5}]}', "recipe.steps: the last step must be body or stream"),
        (
            '{steps = [{do = "read_body"}, {do = "body", size = 1}]}',
            "recipe.steps: read_body needs method POST",
        ),
        (
            '{steps = [{do = "slep", ms = 5}, {do = "body", size = 1}]}',
            "steps[0].do: 'slep' is not a kind of step; nearest: sleep",
        ),
        ('{steps = [{ms = 5}, {do = "body", size = 1}]}', "steps[0].do: is missing; a step names its kind"),
        ('{steps = [{do = "body", size = -1}]}', "steps[0].size: -1 is not a number of bytes"),
        ('{steps = [{do = "body"}]}', "steps[0].size: is missing; give a whole number"),
        (
            '{steps = [{do = "query", database = "oracle"}, {do = "body", size = 1}]}',
            "database: 'oracle' is not a database",
        ),
        ("{steps = []}", "recipe.steps: an empty list is not a list of steps"),
    ],
)
def test_a_bad_recipe_is_told_with_its_cure(recipe: str, sentence: str) -> None:
    found = problems(with_recipe(recipe))
    assert len(found) == 1, found
    assert sentence in found[0]
    assert found[0].startswith("4:")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('title = "x"\nblocks = ', "2:9 not TOML: invalid value"),
        ("x = [1, 2", "not TOML: unclosed array"),
        ("x = 1\nx = 2", "not TOML: cannot overwrite a value"),
        ("", "contestants: is missing"),
        ("[[questions]]\n", "recipe: is missing"),
    ],
)
def test_what_is_no_study_is_told(text: str, sentence: str) -> None:
    assert any(sentence in one for one in problems(text)), problems(text)


def test_a_recipe_of_ones_own_needs_a_name_from_somewhere() -> None:
    text = with_recipe('{steps = [{do = "body", size = 1}]}').replace('name = "q"\n', "")
    assert problems(text) == [
        "2:3 questions[0].name: is missing; a question whose recipe is written in the file needs a name"
    ]


def test_two_questions_of_one_name_are_refused() -> None:
    twice = (
        with_load("{connections = 1, duration = 1}")
        + '[[questions]]\nrecipe = "hello"\nloads = [{rate = 1, duration = 1}]\n'
    )
    assert problems(twice) == [
        "5:3 questions[1]: 'hello' is already questions[0]; leave one out, or let them differ"
    ]


def test_a_stack_that_can_serve_nothing_here_is_a_mistake() -> None:
    text = with_contestants('["uvicorn", "picky"]').replace("hello", "third-party-200ms")
    assert problems(text) == [
        "1:27 contestants[1]: it can serve no question of this study: it calls nobody; leave it out"
    ]
    alone = problems(with_contestants('["picky"]').replace("hello", "third-party-200ms"))
    assert any("questions[0].recipe: no contestant can serve it: it calls nobody" in one for one in alone)


def test_a_stack_that_can_serve_one_of_two_questions_is_none() -> None:
    text = with_contestants('["uvicorn", "picky"]')
    text += '[[questions]]\nrecipe = "third-party-200ms"\nloads = [{connections = 1, duration = 1}]\n'
    assert len(study(text).contestants) == 2


def test_several_errors_of_syntax_are_told_together() -> None:
    assert len(problems("a = \nb = 2\n\n[c\nd = 1\n")) >= 2


def test_a_file_that_is_not_there_or_not_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(StudyFileError, match="No such file"):
        read(tmp_path / "none.toml", STACKS, RECIPES)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b'title = "a"\n\xff\xfe')
    with pytest.raises(StudyFileError, match=r"line 2, column 1   is not UTF-8"):
        read(binary, STACKS, RECIPES)
    (tmp_path / "large.toml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(StudyFileError, match="over 1 MB"):
        read(tmp_path / "large.toml", STACKS, RECIPES)


def test_a_file_written_by_an_editor_of_another_system_is_read(tmp_path: Path) -> None:
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read(path, STACKS, RECIPES).name == "windows"


def test_nesting_without_end_is_told() -> None:
    assert "nested too deeply" in problems("x = " + "[" * 5000 + "]" * 5000)[0]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_whatever_is_changed_in_a_good_file_it_is_read_or_refused(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(GOOD) - 1))
    cut = data.draw(st.integers(0, 12))
    put = data.draw(st.sampled_from(["", "0", "-1", '"x"', "[]", "{}", "true", "=", "\n", "1e999"]))
    with suppress(StudyFileError):
        study(GOOD[:at] + put + GOOD[at + cut :])
