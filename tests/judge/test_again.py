"""The command that repeats a cell of a comparison says all that the cell was measured with."""

import shlex
from dataclasses import replace
from typing import Any

import pytest
import typer

from velodrome.cli import compare
from velodrome.judge import standings
from velodrome.model.app import App, Content, Request, ThirdParty
from velodrome.model.load import Closed, Limits, Link, Load, Open
from velodrome.model.secrets import MARK
from velodrome.model.study import Question
from velodrome.model.trial import Contestant
from velodrome.plan import surroundings

SHOP = App("shop:app", "wsgi", "/shop/.venv/bin/python", "/shop", (Request("cart", "/cart?id=7"),))
LOADS = (Load(Closed(32), 2.0), Load(Open(300), 2.0))


def parsed(app: App = SHOP, link: Link | None = None, limits: Limits | None = None) -> dict[str, Any]:
    """What `velodrome compare` itself understands of the command, option by option."""
    question = Question("shop", app.recipe, LOADS, link=link, app=app)
    line = standings.command_again(app, Contestant("waitress"), question, limits or Limits())
    assert line is not None
    words = shlex.split(line)
    assert words[:2] == ["velodrome", "compare"]
    of_compare = typer.Typer()
    compare.register(of_compare)
    return typer.main.get_command(of_compare).make_context("compare", words[2:]).params


def test_app_stack_interpreter_folder_and_loads_are_repeated() -> None:
    options = parsed()
    assert options["app"] == ["shop:app"]
    assert options["stack"] == ["waitress"]
    assert (options["python"], options["cwd"]) == ("/shop/.venv/bin/python", "/shop")
    assert options["request"] == ["GET /cart?id=7"]
    assert (options["connections"], options["length"], float(options["rate"])) == (32, "2s", 300)


def test_a_servicer_is_repeated_with_its_description() -> None:
    assert (
        parsed(replace(SHOP, form="servicer", proto="/shop/my shop.proto"))["proto"] == "/shop/my shop.proto"
    )
    assert parsed()["proto"] == ""


@pytest.mark.parametrize(
    "link",
    [
        Link(),
        Link(rtt_ms=160),
        Link(rtt_ms=0.25, jitter_ms=0.125, rate_mbit=0.001, loss=0.07, queue_packets=500, congestion="reno"),
        Link(rtt_ms=60_000, rate_mbit=100_000, loss=1e-6),
    ],
)
def test_what_was_measured_over_a_link_is_repeated_over_it(link: Link) -> None:
    assert surroundings.read_link(parsed(link=link)["link"]) == link
    assert parsed()["link"] == ""


def test_an_interface_is_named_only_where_its_user_named_it() -> None:
    assert parsed(replace(SHOP, named_interface="asgi"))["interface"] == "asgi"
    assert parsed()["interface"] == ""


def test_limits_third_parties_and_names_of_variables_are_repeated() -> None:
    app = replace(SHOP, variables=("TOKEN",), third_parties=(ThirdParty("PAY", "lognormal(50ms,0.4)"),))
    options = parsed(app, limits=Limits(cpus=1, memory_bytes=512 << 20))
    assert options["env"] == ["TOKEN"]
    assert options["upstream"] == ["PAY=latency:lognormal(50ms,0.4)"]
    assert options["cpus"] == 1
    assert Limits.of(1, options["memory"]) == Limits(cpus=1, memory_bytes=512 << 20)


def test_requests_that_do_not_go_on_a_line_are_those_of_a_file() -> None:
    app = replace(SHOP, requests=(Request("order", "/", "POST", body=Content(base64="/w==")),))
    assert str(parsed(app)["requests"]) == standings.REQUESTS_FILE


def test_a_body_of_several_lines_is_that_of_a_file() -> None:
    app = replace(SHOP, requests=(Request("order", "/", "POST", body=Content("{}\n")),))
    assert str(parsed(app)["requests"]) == standings.REQUESTS_FILE


def test_an_app_that_was_named_by_its_file_is_found_again() -> None:
    assert parsed(replace(SHOP, source="src"))["env"] == ["PYTHONPATH=src"]
    assert parsed(replace(SHOP, source="src", variables=("PYTHONPATH",)))["env"] == ["PYTHONPATH"]


def test_a_revision_cannot_be_repeated_because_its_folder_is_gone() -> None:
    app = replace(SHOP, revision="HEAD~1")
    question = Question("before", app.recipe, LOADS, app=app)
    assert standings.command_again(app, Contestant("waitress"), question, Limits()) is None


def test_headers_are_to_be_given_again_and_requests_are_lines_all_the_same() -> None:
    cart = Request("GET /cart", "/cart", headers=(("Host", MARK), ("X-Tenant", MARK)))
    options = parsed(replace(SHOP, requests=(cart,), headers=("Host", "X-Tenant")))
    assert options["header"] == [f"Host: {MARK}", f"X-Tenant: {MARK}"]
    assert options["request"] == ["GET /cart"]


def test_headers_of_a_file_are_the_files() -> None:
    options = parsed(replace(SHOP, requests=(Request("cart", "/cart", headers=(("Authorization", MARK),)),)))
    assert not options["header"]
    assert str(options["requests"]) == standings.REQUESTS_FILE


def test_what_a_third_party_answers_is_repeated() -> None:
    third = ThirdParty("PAY_URL", "50ms", 0.01, body=Content("{}"), content_type="application/json")
    options = parsed(replace(SHOP, third_parties=(third,)))
    assert options["upstream"] == ["PAY_URL=latency:50ms,errors:1%,type:application/json,body:{}"]
