"""From what a user says of their app to an App: interpreter, folder, variables, third parties, and what is refused."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.run.apps.theirs import SHOP

from velodrome.guest import catalog
from velodrome.model.app import App, ThirdParty
from velodrome.model.errors import BrokenPluginError, UsageError
from velodrome.usecases import apps
from velodrome.usecases.apps import AppSpec, ServedSpec, look
from velodrome.usecases.terms import Knobs

HOSTILE = str(Path(__file__).parents[1] / "truth" / "targets" / "hostile.py")


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            AppSpec("plain:application", interface="cgi"),
            "--interface cgi: apps are called through ",
        ),
        (
            AppSpec("plain:application", env=("NOT_SET",)),
            "--env NOT_SET: it is not set here. Write NAME=VALUE",
        ),
        (AppSpec("plain:application", env=("=1",)), "it has no name"),
        (AppSpec("plain:application", upstreams=("URL",)), "--upstream URL: write VARIABLE=latency:50ms"),
        (AppSpec("plain:application", upstreams=("URL=latency:soon",)), "--upstream URL=latency:soon: "),
        (
            AppSpec("plain:application", env=("URL=aaa",), upstreams=("URL=5ms",)),
            "--upstream URL=5ms: --env URL sets this variable too; give only one of them",
        ),
        (
            AppSpec("plain:application", upstreams=("URL=9ms", "URL=5ms")),
            "--upstream URL=5ms: URL is given twice",
        ),
        (AppSpec("plain:application", upstreams=("PATH=5ms",)), "the process itself needs PATH"),
        (AppSpec("plain:application", upstreams=("PYTHONPATH=5ms",)), "the process itself needs PYTHONPATH"),
        (AppSpec("plain:application", python="./no/python"), "there is no such file"),
        (AppSpec("plain:application", python="9.9"), "there is none of that version"),
        (AppSpec("plain:application", cwd="/no/such"), "--cwd /no/such: there is no such folder"),
    ],
)
def test_what_cannot_be_is_reported_with_the_cure(spec: AppSpec, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        look(spec)
    assert sentence in str(caught.value)


def test_without_another_word_the_active_environment_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert apps.interpreter("") == sys.executable
    monkeypatch.setenv("VIRTUAL_ENV", "/home/me/shop/.venv")
    assert apps.interpreter("") == "/home/me/shop/.venv/bin/python"


def test_an_environment_is_named_by_its_folder_or_its_interpreter(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    # Not followed to what it links to: that one does not see the environment.
    assert apps.interpreter(str(tmp_path)) == apps.interpreter(str(python)) == str(python)


def test_third_parties_are_named_by_their_variable() -> None:
    parties = apps.third_parties(("PAYMENTS_URL=latency:lognormal(50ms,0.4)", "STOCK_URL=20ms"))
    assert parties == (ThirdParty("PAYMENTS_URL", "lognormal(50ms,0.4)"), ThirdParty("STOCK_URL", "20ms"))


def test_stacks_of_the_users_own_are_named_by_their_file(tmp_path: Path) -> None:
    assert apps.split_stacks(["waitress", HOSTILE]) == (("waitress", "hostile"), (HOSTILE,))
    broken = tmp_path / "broken.py"
    broken.write_text("stack = 1\n")
    with pytest.raises(BrokenPluginError, match="stack is a int"):
        apps.split_stacks([str(broken)])


def test_what_serves_an_app_is_built_from_source_only_where_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allowed = []
    monkeypatch.setattr(apps, "overlay_for", lambda stack, app, allow_sdist: allowed.append(allow_sdist))
    spec = AppSpec("plain:application", cwd=str(SHOP))
    for variant in (spec, replace(spec, allow_sdist=True)):
        apps.lab_for(variant).overlay(catalog.stack("waitress"), App("plain:application", "wsgi", "", ""))
    assert allowed == [False, True]


def test_values_of_variables_are_the_labs_and_never_the_apps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hush-hush")
    spec = AppSpec("plain:application", cwd=str(SHOP), env=("TOKEN", "NAME=blue"))
    app = look(spec)
    assert app.variables == ("TOKEN", "NAME")
    assert "hush-hush" not in repr(app)
    assert apps.lab_for(spec).variables == {"TOKEN": "hush-hush", "NAME": "blue"}
    assert app.cwd == os.path.abspath(SHOP)


@pytest.mark.parametrize("stack", ["", "waitress"])
def test_a_recipe_is_served_by_the_stack_that_is_named_or_by_a_usual_one(stack: str) -> None:
    spec = ServedSpec(recipe="hello")
    with apps.prepare_on(spec, stack, Knobs(), lambda _: None) as (served, who):
        assert served.recipe.name == "hello"
        assert who.stack == stack or (not stack and catalog.stack(who.stack).usual)
