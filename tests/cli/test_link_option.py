"""`velodrome run --link` puts a link under every question that has none of its own."""

import pytest
from tests.plan.made import study

from velodrome.cli._server_options import between
from velodrome.guest import catalog
from velodrome.model.errors import BadOptionError
from velodrome.model.load import Link
from velodrome.plan import matrix
from velodrome.usecases.race import RaceSpec, choose

TWO = """
contestants = ["uvicorn"]
[[questions]]
recipe = "hello"
loads = [{connections = 1, duration = 1}]
[[questions]]
name = "far"
recipe = "hello"
link = {rtt = "20ms"}
loads = [{connections = 1, duration = 1}]
"""


def test_questions_without_a_link_get_it_and_its_name() -> None:
    chosen = choose(study(TWO), RaceSpec("", link=between("rtt=160ms,loss=1%")))
    assert [(question.name, question.link) for question in chosen.questions] == [
        ("hello-rtt160ms-loss1%", Link(160, loss=0.01)),
        ("far-rtt20ms", Link(20)),
    ]
    assert "over a link of 160 ms, 1 % loss" in chosen.questions[0].about
    assert [question.link for question in choose(study(TWO), RaceSpec("")).questions] == [None, Link(20)]


def test_a_link_that_makes_no_sense_is_refused_with_what_to_write() -> None:
    with pytest.raises(
        BadOptionError, match="--link rtt=160: the rtt of a link, '160', is not a span of time"
    ):
        between("rtt=160")


@pytest.mark.parametrize("pattern", ["hello/uvicorn", "hello", "hello-rtt160ms/uvicorn", "hello-*"])
def test_only_takes_the_name_of_a_question_with_and_without_its_link(pattern: str) -> None:
    chosen = choose(study(TWO), RaceSpec("", link=between("rtt=160ms")))
    sessions = matrix.lay_out(chosen, catalog.stacks(), (pattern,)).sessions
    assert {trial.cell for session in sessions for trial in session.trials} == {"hello-rtt160ms/uvicorn"}
