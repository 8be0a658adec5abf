"""A study file is read whole, or all that is wrong with it is reported at once with its place and its cure."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plan.made import KNOWN, RECIPES, problems, study

from velodrome.guest.recipe import Body, Sleep
from velodrome.model.errors import StudyFileError, TooLargeError
from velodrome.model.load import Closed, Limits, Load, Open
from velodrome.model.trial import Contestant
from velodrome.plan.study_file import read

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


def test_all_problems_are_reported_at_once_in_the_order_of_the_file() -> None:
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
        "  line 6, column 48    questions[0].loads[1].rate: -5 is not a rate; give requests per second above 0, or "
        '"100..500" with step or ramp' in lines
    )
    assert [line.split()[1].rstrip(",") for line in lines[1:]] == sorted(
        [line.split()[1].rstrip(",") for line in lines[1:]], key=int
    )
    assert caught.value.exit_code == 2


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
def test_what_is_no_study_is_reported(text: str, sentence: str) -> None:
    assert any(sentence in problem for problem in problems(text)), problems(text)


def test_several_errors_of_syntax_are_reported_together() -> None:
    assert len(problems("a = \nb = 2\n\n[c\nd = 1\n")) >= 2


def test_a_file_that_is_not_there_or_not_text_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StudyFileError, match="No such file"):
        read(tmp_path / "none.toml", KNOWN)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b'title = "a"\n\xff\xfe')
    with pytest.raises(StudyFileError, match=r"line 2, column 1   is not UTF-8"):
        read(binary, KNOWN)
    (tmp_path / "large.toml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(TooLargeError, match="256 000 bytes"):
        read(tmp_path / "large.toml", KNOWN)


def test_a_file_written_by_an_editor_of_another_system_is_read(tmp_path: Path) -> None:
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read(path, KNOWN).name == "windows"


def test_a_number_of_thousands_of_digits_is_reported() -> None:
    assert "not TOML" in problems(f"blocks = {'1' * 5000}")[0]


def test_more_heats_than_a_day_holds_are_reported() -> None:
    questions = "".join(
        f'[[questions]]\nname = "q{number}"\nrecipe = "hello"\nloads = [{{connections = 1, duration = "1s"}}]\n'
        for number in range(101)
    )
    assert (
        "101 questions and 1000 blocks"
        in problems(f'blocks = 1000\ncontestants = ["uvicorn"]\n{questions}')[0]
    )


def test_nesting_without_end_is_reported() -> None:
    assert "nested too deeply" in problems("x = " + "[" * 5000 + "]" * 5000)[0]


@given(st.data())
def test_whatever_is_changed_in_a_good_file_it_is_read_or_refused(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(GOOD) - 1))
    cut = data.draw(st.integers(0, 12))
    put = data.draw(st.sampled_from(["", "0", "-1", '"x"', "[]", "{}", "true", "=", "\n", "1e999"]))
    with suppress(StudyFileError):
        study(GOOD[:at] + put + GOOD[at + cut :])
