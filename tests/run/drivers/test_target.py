"""What a driver is given for the requests of an app: plain fields where every driver can carry them, else a mix."""

from dataclasses import replace

import pytest
from tests.run.drivers.record import DIALECTS

from velodrome.model.app import Content, Request
from velodrome.model.errors import UnfitLoadError
from velodrome.model.load import Closed, Load, Schedule, Step
from velodrome.run import third_party
from velodrome.run.drivers.driver import Target
from velodrome.run.drivers.foreign import Dialect, ForeignDriver
from velodrome.run.drivers.velodrome import VelodromeDriver

URL = "http://127.0.0.1:8000/"
LOAD = Load(Closed(4), duration_s=1.0)
ORDER = Request(
    "order",
    "/orders?fast=1",
    "POST",
    headers=(("X", "y"),),
    body=Content(base64="/w=="),
    expect_status=201,
    expect_body=Content("made"),
)
ITEM = Request("item", "/items/{{random 1..9}}", weight=3, expect_contains="id")


def test_one_plain_request_is_what_every_driver_knows() -> None:
    target = Target.of_requests(URL, [ORDER], allow=["127.0.0.1"])
    wanted = Target(f"{URL}orders?fast=1", "POST", (("X", "y"),), b"\xff", b"made", 201, ("127.0.0.1",))
    assert target == wanted
    assert target.path == "/orders?fast=1"
    assert Target.of_requests(URL, [Request("a")]).path == Target("http://a").path == "/"


@pytest.mark.parametrize(
    "requests",
    [
        (ORDER, ITEM),
        (replace(ITEM, expect_contains=None),),
        (Request("a", expect_contains="x"),),
        (Request("a", headers=(("X", "{{n}}"),)),),
        (Request("a", body=Content("{{n}}")),),
    ],
)
def test_all_else_is_a_mix_that_only_velodrome_carries(requests: tuple[Request, ...]) -> None:
    target = Target.of_requests(URL, requests)
    assert (target.url, target.mix) == (URL, requests)
    for dialect in DIALECTS.values():
        assert_refused(dialect, target)


def assert_refused(dialect: Dialect, target: Target) -> None:
    with pytest.raises(UnfitLoadError, match=r"mix = .*; velodrome "):
        ForeignDriver(dialect).run(LOAD, target, lambda event: True)


def test_velodrome_sends_the_mix_and_fills_in_what_has_places() -> None:
    spec = VelodromeDriver().spec(LOAD, Target.of_requests(URL, (ITEM, ORDER)))
    assert spec.template
    assert spec.mix[0] == {
        "name": "item",
        "weight": 3,
        "method": "GET",
        "path": "/items/{{random 1..9}}",
        "headers": [],
        "body": None,
        "expect_status": None,
        "expect_body": None,
        "expect_contains": "id",
    }
    assert (spec.mix[1]["body"], spec.mix[1]["expect_body"]) == ({"base64": "/w=="}, {"text": "made"})
    plain = VelodromeDriver().spec(LOAD, Target.of_requests(URL, (ORDER, replace(ORDER, name="again"))))
    assert not plain.template


SCHEDULED = Load(Schedule((Step(100, 0.3), Step(100, 0.3, 200)), "poisson", 9), duration_s=0.6)


def test_a_rate_that_changes_is_carried_by_velodrome_alone() -> None:
    spec = VelodromeDriver().spec(SCHEDULED, Target(URL))
    assert (spec.rate, spec.arrivals, spec.connections, spec.duration_s) == (None, "poisson", 9, 0.6)
    assert spec.schedule == [
        {"rate": 100, "duration_s": 0.3},
        {"rate": 100, "duration_s": 0.3, "to_rate": 200},
    ]
    for dialect in DIALECTS.values():
        with pytest.raises(UnfitLoadError, match=r"rate = 100\.\.200: "):
            ForeignDriver(dialect).run(SCHEDULED, Target(URL), lambda event: True)


@pytest.mark.measured
def test_each_step_of_a_schedule_is_reported() -> None:
    load = Load(Schedule((Step(100, 0.3), Step(200, 0.3))), duration_s=0.6)
    with third_party.serve_here({"latency": "1ms"}) as third:
        facts = VelodromeDriver().run(load, Target(f"http://127.0.0.1:{third.port}/"), lambda event: True)
    assert [(step.rate, step.to_rate, step.requests) for step in facts.steps] == [
        (100, 100, 30),
        (200, 200, 60),
    ]
    assert facts.steps[1].at_s == pytest.approx(0.3)
    assert sum(step.ok for step in facts.steps) == facts.ok == 90
