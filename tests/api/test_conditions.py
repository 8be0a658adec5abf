"""What makes no sense is refused in a sentence before anything is started, and equal requests are counted."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import velodrome as vd
from velodrome.api.apps import mix_of
from velodrome.model.app import Request
from velodrome.model.errors import UsageError

APP = "shop:application"


@pytest.mark.parametrize(
    ("call", "how", "sentence"),
    [
        (vd.compare, {"rate": -5}, "rate=-5 is not a rate"),
        (vd.compare, {"connections": 0}, "connections=0: at least 1"),
        (vd.compare, {"blocks": 0}, "blocks=0: at least 1"),
        (vd.compare, {"duration": 0.1}, "measure for 0.5 s at least"),
        (vd.compare, {"link": "rtt=7"}, "link: the rtt of a link"),
        (vd.compare, {"headers": {"My Name": "s3cret"}}, "'My Name' is no name of a header"),
        (vd.compare, {"stacks": ["./no.py"]}, "the stack './no.py' could not be loaded"),
        (vd.compare, {"memory": "lots"}, "memory: 'lots' is no amount of memory; write 512MB"),
        (vd.compare, {"cpus": 0}, "cpus=0: at least 1"),
        (vd.compare, {"requests": ["GET cart"]}, "'GET cart'"),
        (vd.capacity, {"closed": True, "slo": "p99 < 1s"}, "closed=True shows throughput alone"),
        (vd.load, {"requests": ["GET /"], "path": "/cart"}, "requests define everything"),
        (vd.tune, {"rate": -5}, "rate=-5 is not a rate"),
        (vd.tune, {"rate": math.nan}, "rate=nan is not a rate"),
        (vd.tune, {"rate": math.inf}, "rate=inf is not a rate"),
        (vd.race, {"blocks": 0}, "blocks=0: at least 1"),
        (vd.tune, {"goal": "speed"}, "goal='speed' is none; there are capacity, cpu, memory"),
        (vd.tune, {"goal": "cpu"}, "goal='cpu' needs a rate"),
        (vd.diff, {"rate": 5}, "rate: only where two revisions of an app are raced"),
        (vd.diff, {"app": APP}, "name two revisions"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(
    call: Callable[..., Any], how: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        call(APP, **how)
    assert sentence in str(caught.value)
    assert isinstance(caught.value, vd.VelodromeError)


SERVED = """
def application(environ, start_response):
    start_response("200 OK", [("Content-Length", "0")])
    return []
"""


@pytest.mark.parametrize("call", [vd.load, vd.capacity])
def test_a_setting_that_a_stack_has_not_is_refused_before_anything_is_started(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "plain_shop.py").write_text(SERVED)
    with pytest.raises(UsageError, match="setting of waitress"):
        call("plain_shop:application", cwd=str(tmp_path), stack="waitress", knobs={"worker": 4})


def test_commands_run_around_and_a_setup_that_fails_ends_it(tmp_path: Path) -> None:
    (tmp_path / "plain_shop.py").write_text(SERVED)
    commands: dict[str, Any] = {"setup": "echo no database; false", "teardown": f"touch {tmp_path}/torn-down"}
    with pytest.raises(vd.VelodromeError, match="no database"):
        vd.compare("plain_shop:application", cwd=str(tmp_path), **commands)
    with pytest.raises(UsageError, match="has no 'app'"):
        vd.capacity("plain_shop:app", cwd=str(tmp_path), teardown=commands["teardown"])
    assert (tmp_path / "torn-down").exists()


def test_a_url_has_no_path_where_requests_say_it() -> None:
    with pytest.raises(UsageError, match="without a path"):
        vd.load("http://127.0.0.1:9/shop", requests=["GET /cart"])


def test_a_comparison_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="name an app"):
        vd.compare()


@pytest.mark.parametrize(
    "hosts",
    [{"server_on": "b"}, {"load_from": ["c"]}, {"third_party_on": "d"}, {"send": True}, {"revision": "v1"}],
)
def test_hosts_and_what_is_sent_to_them_take_agents(hosts: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "plain_shop.py").write_text(SERVED)
    with pytest.raises(UsageError, match="agents"):
        vd.compare("plain_shop:application", cwd=str(tmp_path), **hosts)
    if not hosts.keys() & {"send", "revision"}:
        with pytest.raises(UsageError, match="agents"):
            vd.race("first-lap", **hosts)


def test_the_same_request_twice_is_sent_twice_as_often() -> None:
    once = Request("item", "/items/7")
    assert [(request.name, request.weight) for request in mix_of(["GET /cart", "GET /cart", once])] == [
        ("GET /cart", 2.0),
        ("item", 1.0),
    ]
    assert mix_of([once]) == (once,)
    assert [request.path for request in mix_of([])] == ["/"]


def test_requests_come_from_a_log_a_document_or_a_file(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text('::1 - - [10/Oct/2000:13:55:01 -0700] "GET /cart HTTP/1.1" 200 5\n' * 3)
    found = vd.requests(access_log=str(log))
    assert [request.path for request in found.requests] == ["/cart"]
    assert found.peak_rps == 3
    document = tmp_path / "openapi.yaml"
    document.write_text("openapi: 3.1.0\npaths: {/items: {get: {}}}\n")
    assert [request.path for request in vd.requests(openapi=document).requests] == ["/items"]
    assert mix_of(vd.requests("GET /cart").requests)[0].path == "/cart"
    with pytest.raises(UsageError, match="requests"):
        vd.requests("GET /cart", openapi=document)
