"""What a treatment makes of a contestant, and which of an app's requests a probe sends."""

import pytest

from velodrome.guest import catalog
from velodrome.model.app import Content, Request
from velodrome.model.diagnosis import AS_IT_IS, Treatment
from velodrome.model.trial import Contestant
from velodrome.run import calls
from velodrome.run.drivers.driver import Target
from velodrome.run.instruments.clients import where
from velodrome.run.instruments.standing import contestant_of

pytestmark = pytest.mark.unit
STACKS = catalog.stacks()
URL = "http://127.0.0.1:8000"


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


def test_of_several_requests_a_probe_sends_the_first_that_is_the_same_each_time() -> None:
    order = Request("order", "/orders/{{n}}", "POST", body=Content("{}"))
    cart = Request("cart", "/cart?id=7", "POST", body=Content('{"id": 7}'), expect_status=201)
    found = where(Target.of_requests(URL, (order, cart)))
    assert found is not None
    assert (found.host, found.port, found.method, found.path) == ("127.0.0.1", 8000, "POST", "/cart?id=7")
    assert (found.body, found.status) == (b'{"id": 7}', 201)
    assert where(Target.of_requests(URL, (order,))) is None


def test_no_probe_speaks_grpc() -> None:
    call = calls.grpc_of_recipe(catalog.recipes()["hello"])
    assert where(Target("grpc://127.0.0.1:8000/x", call=call)) is None
