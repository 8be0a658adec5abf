"""Suspects of stored loads: whose they are, and the command line that proves each as its user would type it."""

import shlex
from dataclasses import replace

import pytest
from tests.judge.loads_made import DOCUMENT, FULL, loaded
from tests.run.made import failed, trial

from velodrome.guest import catalog
from velodrome.model.app import App, Request
from velodrome.model.load import Limits, Load, Open
from velodrome.model.measurement import Measurement
from velodrome.model.trial import Contestant
from velodrome.usecases import load
from velodrome.usecases.suspects import command, suspects

pytestmark = pytest.mark.unit
STACKS = catalog.stacks()
LOW = Load(Open(100, "constant"), 2.0)
APP = App(
    "shop:app",
    "asgi",
    "/srv/venv/bin/python",
    "/srv/shop",
    (Request("cart", path="/cart?id=7"),),
    variables=("DATABASE_URL",),
    headers=("X-Key",),
)


def delayed(question: str = "shop", stack: str = "uvicorn-h11", workers: int = 2) -> list[Measurement]:
    """Return loads of an app whose requests take 42.5 ms on all but fresh connections."""
    found = []
    for pace, rps in ((LOW, 100.0), (FULL, 1490.0)):
        measurement = loaded(pace, rps, 42.5, fastest=0.4)
        contestant = Contestant(stack, {"workers": workers})
        of = replace(
            measurement.trial, app=APP, question=question, contestant=contestant, limits=Limits(cpus=2)
        )
        found.append(replace(measurement, trial=of))
    return found


def test_the_two_worker_case_is_named_with_the_command_that_proves_it() -> None:
    (found,) = suspects(delayed(), STACKS)
    assert found.id == "nodelay"
    assert found.why == "p50 42.5 ms on reused connections, 0.4 ms on the first request of one"
    assert "×2" in found.of
    words = shlex.split(found.prove)
    assert words[:7] == ["velodrome", "doctor", "shop:app", "--stack", "uvicorn-h11", "--workers", "2"]
    assert words[-2:] == ["--only", "nodelay"]
    for option, value in (
        ("--python", "/srv/venv/bin/python"),
        ("--cwd", "/srv/shop"),
        ("--request", "GET /cart?id=7"),
        ("--env", "DATABASE_URL"),
        ("--cpus", "2"),
    ):
        assert words[words.index(option) + 1] == value
    assert "X-Key: •••" in words, "which is refused until the value stands there"


def test_a_setting_of_its_usual_value_is_not_typed_and_one_without_an_option_is_a_knob() -> None:
    of = replace(trial(), app=APP, contestant=Contestant("uvicorn-h11", {"workers": 1}))
    assert "--workers" not in command("nodelay", of, STACKS["uvicorn-h11"])
    stack, knob = next(
        (stack, name)
        for stack in STACKS.values()
        for name in stack.knobs
        if name not in {"workers", "threads", "loop"}
    )
    usual = stack.settings({})[knob]
    other = "other" if isinstance(usual, str) else usual + 1
    of = replace(trial(), app=APP, contestant=Contestant(stack.name, {knob: other}))
    assert f"--knob {knob}={other}" in command("nodelay", of, stack)


def test_a_revision_is_proven_where_its_user_is_and_not_where_it_was_checked_out_to() -> None:
    of = replace(trial(), app=replace(APP, revision="HEAD~1", cwd="/tmp/gone"))
    words = shlex.split(command("nodelay", of, STACKS["uvicorn"]))
    assert words[words.index("--cwd") + 1] == "."


def test_of_velodromes_own_recipes_it_is_known_what_is_in_them() -> None:
    own = [replace(measurement, trial=replace(measurement.trial, app=None)) for measurement in delayed()]
    assert suspects(own, STACKS) == ()


def test_of_several_questions_each_is_named() -> None:
    both = [*delayed("shop"), *delayed("cart")]
    assert {suspect.of.partition("(")[2] for suspect in suspects(both, STACKS)} == {"shop)", "cart)"}


def test_the_same_setting_is_one_contestant_whether_its_workers_were_given_or_not() -> None:
    low, full = delayed(workers=1)
    untold = replace(full, trial=replace(full.trial, contestant=Contestant("uvicorn-h11")))
    assert len(suspects([low, untold], STACKS)) == 1


def test_what_failed_and_a_stack_that_is_not_known_name_nobody() -> None:
    unknown = [
        replace(measurement, trial=replace(measurement.trial, contestant=Contestant("none")))
        for measurement in delayed()
    ]
    assert suspects([failed(trial()), *unknown], STACKS) == ()


def test_a_healthy_run_names_nobody() -> None:
    both = loaded(LOW, 100, 0.6, fastest=0.3), loaded(FULL, 9000, 7.0, cpus=0.99)
    assert (
        suspects(
            [replace(measurement, trial=replace(measurement.trial, app=APP)) for measurement in both],
            STACKS,
            2,
        )
        == ()
    )


def test_of_a_url_it_is_not_known_which_app_answers() -> None:
    (found,) = load.suspects(DOCUMENT)
    assert (found.id, found.prove) == ("nodelay", "velodrome doctor APP --only nodelay")
