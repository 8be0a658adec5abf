"""Experiments are checked against what their kind has, before anything is run."""

import pytest
from tests.plan.made import STACKS, problems, study, with_load

from velodrome.model.claim import Experiment
from velodrome.model.errors import NothingSelectedError
from velodrome.plan.matrix import lay_out, narrow

ONE = with_load("{connections = 1, duration = 1}")


def with_experiment(keys: str) -> str:
    return f"{ONE}[[experiments]]\n{keys}\n"


def test_an_experiment_is_read_with_what_differs_from_its_kind() -> None:
    text = with_experiment(
        'kind = "canary"\nname = "c"\nrequests = 100\nstacks = ["uvicorn"]\ndeadline = "2min"'
    )
    assert study(text).experiments == (Experiment("c", "canary", {"stacks": ("uvicorn",)}, 120),)
    assert study(with_experiment('kind = "canary"')).experiments == (Experiment("canary", "canary"),)


def test_it_can_be_chosen_alone_and_left_out_of_the_quick_form() -> None:
    whole = study(with_experiment('kind = "canary"'))
    laid_out = lay_out(whole, STACKS, ["canary"])
    assert [experiment.name for experiment in laid_out.experiments] == ["canary"]
    assert laid_out.sessions == ()
    assert narrow(whole, laid_out).questions == ()
    assert lay_out(whole, STACKS, ["hello"]).experiments == ()
    with pytest.raises(NothingSelectedError):
        lay_out(whole, STACKS, ["canari"])


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ("requests = 5", "experiments[0].kind: is missing; give the name of one"),
        ('kind = "canari"', "experiments[0].kind: no kind of experiment is called 'canari'; nearest: canary"),
        ('kind = "canary"\nrequets = 5', "requets: this kind has no such setting; nearest: requests"),
        ('kind = "canary"\nrequests = "5"', "requests: '5' is not a whole number; give one such as 100"),
        ('kind = "canary"\nrequests = true', "requests: true is not a whole number"),
        ('kind = "canary"\nidiom = 5', "idiom: 5 is not a text; give one such as 'local'"),
        ('kind = "canary"\nstacks = "uvicorn"', "stacks: 'uvicorn' is not a list of texts"),
        ('kind = "canary"\nstacks = ["x", "uvicron"]', "stacks[1]: no stack is called 'uvicron'"),
        ('kind = "canary"\ndeadline = 0', "deadline: 0 is not a span of time"),
        (
            'kind = "canary"\n[[experiments]]\nkind = "canary"',
            "experiments[1]: 'canary' is already experiments[0]",
        ),
    ],
)
def test_a_bad_experiment_is_reported_with_its_cure(keys: str, sentence: str) -> None:
    assert any(sentence in problem for problem in problems(with_experiment(keys))), problems(
        with_experiment(keys)
    )
