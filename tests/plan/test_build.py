"""Every mistake in a contestant, a load or a recipe is reported with its place and its cure."""

import pytest
from tests.plan.made import problems, study, with_contestants, with_load, with_recipe

from velodrome.model.trial import Contestant


def test_a_knob_at_its_default_is_no_other_contestant() -> None:
    assert study(with_contestants('[{stack = "uvicorn", workers = 1}]')).contestants == (
        Contestant("uvicorn"),
    )


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
def test_a_bad_load_is_reported_with_its_cure(load: str, sentence: str) -> None:
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
def test_a_bad_contestant_is_reported_with_its_cure(contestants: str, sentence: str) -> None:
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
        ('{steps = [{do = "sleep", ms = 5}]}', "recipe.steps: the last step must be body, stream or chat"),
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
            "database: no database is called 'oracle'; known: mariadb, mongodb, postgresql, redis, sqlite",
        ),
        ("{steps = []}", "recipe.steps: an empty list is not a list of steps"),
    ],
)
def test_a_bad_recipe_is_reported_with_its_cure(recipe: str, sentence: str) -> None:
    found = problems(with_recipe(recipe))
    assert len(found) == 1, found
    assert sentence in found[0]
    assert found[0].startswith("4:")


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
    assert any(
        "questions[0].recipe: no contestant can serve it: it calls nobody" in problem for problem in alone
    )


def test_a_stack_that_can_serve_one_of_two_questions_is_none() -> None:
    text = with_contestants('["uvicorn", "picky"]')
    text += '[[questions]]\nrecipe = "third-party-200ms"\nloads = [{connections = 1, duration = 1}]\n'
    assert len(study(text).contestants) == 2
