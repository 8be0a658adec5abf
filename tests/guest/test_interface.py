"""`Interface`: what a right answer is where it writes its own head; `app` made on first use."""

import sys
import types
from typing import Any, get_args

import pytest
from typer.models import OptionInfo

from velodrome.cli import _app_options as option
from velodrome.guest import catalog
from velodrome.guest.interface import Interface, lazily
from velodrome.guest.recipe import Body, Recipe, filler
from velodrome.guest.services.hello import recipe as hello


def test_where_the_server_writes_the_head_the_body_is_what_was_asked_for() -> None:
    assert Interface("x", "x").answer(hello) == filler(84)


def test_where_the_interface_writes_the_head_both_together_are_what_was_asked_for() -> None:
    assert Interface("x", "x", head_bytes=lambda size: 60).answer(hello) == filler(24)


def test_a_body_that_is_not_measured_on_the_wire_is_the_same_for_all() -> None:
    recipe = Recipe("x", "x", (Body(500),))
    assert {interface.answer(recipe) for interface in catalog.interfaces().values()} == {filler(500)}


def test_the_app_is_made_when_first_asked_for_and_then_kept() -> None:
    made: list[object] = []

    def make() -> Any:
        made.append(object())
        return made[-1]

    module = types.ModuleType("sample")
    module.__dict__.update(make_app=make, __getattr__=lazily(module.__dict__))
    assert made == []
    assert module.app is module.app is made[0]
    assert len(made) == 1
    with pytest.raises(AttributeError, match="'sample' has no attribute 'application'"):
        _ = module.application


def test_every_interface_offers_its_app_in_all_the_ways_servers_need() -> None:
    for name, interface in catalog.interfaces().items():
        module = sys.modules["velodrome.guest.interfaces." + name]
        assert (interface.name, module.interface) == (name, interface)
        assert all(callable(getattr(module, way)) for way in ("build", "make_app", "__getattr__"))
        assert all("==" in requirement for requirement in interface.requires), "not pinned"


def test_the_option_that_names_an_interface_names_all_that_apps_are_called_through() -> None:
    (help_text,) = (arg.help for arg in get_args(option.Interface) if isinstance(arg, OptionInfo))
    apps = {name for name, interface in catalog.interfaces().items() if interface.apps}
    assert {"wsgi", "asgi", "asgi_trio", "robyn", "sanic"} <= apps
    assert help_text is not None
    assert apps <= set(help_text.replace(",", " ").replace(".", " ").split())
