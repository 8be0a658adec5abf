"""What a treatment makes of a contestant."""

import pytest

from velodrome.guest import catalog
from velodrome.model.diagnosis import AS_IT_IS, Treatment
from velodrome.model.trial import Contestant
from velodrome.run.instruments.standing import contestant_of

pytestmark = pytest.mark.unit
STACKS = catalog.stacks()


def test_a_setting_of_a_treatment_wins_over_the_contestants_own() -> None:
    own = Contestant("uvicorn", {"keepalive": 2, "workers": 2})
    treated = contestant_of(own, Treatment("longer", knobs={"keepalive": 75}), STACKS)
    assert (treated.stack, treated.knobs) == ("uvicorn", {"keepalive": 75, "workers": 2})
    assert contestant_of(own, AS_IT_IS, STACKS) == own


def test_another_stack_keeps_the_settings_that_it_has_as_well() -> None:
    own = Contestant("uvicorn", {"workers": 2, "loop": "asyncio"})
    treated = contestant_of(own, Treatment("elsewhere", stack="gunicorn-gthread"), STACKS)
    assert (treated.stack, treated.knobs) == ("gunicorn-gthread", {"workers": 2})


def test_two_treatments_together_are_on_the_stack_of_the_later() -> None:
    both = Treatment("a", stack="gunicorn-gthread").plus(Treatment("b", knobs={"backlog": 9}))
    assert (both.stack, both.knobs, both.about) == ("gunicorn-gthread", {"backlog": 9}, "a, b")
