"""What an app lacked of its user's environment, read from errors as settings libraries raise them."""

import sys
from pathlib import Path

import pytest
from tests.run.apps.theirs import python_with

from velodrome.model.app import App
from velodrome.model.errors import AppRaisesError
from velodrome.run.apps.inspect import look

DJANGO = "django==5.2.8"
PYDANTIC = """
import os
from pydantic import BaseModel
class Settings(BaseModel):
    debug: bool = False
    shop_database_url: str
    secret: str
settings = Settings(**{name.lower(): value for name, value in os.environ.items()})
"""
DJANGO_ENVIRON = """
import os
from django.core.exceptions import ImproperlyConfigured
def env(name):
    try:
        return os.environ[name]
    except KeyError as error:
        raise ImproperlyConfigured(f"Set the {name} environment variable") from error
url = env("SHOP_DATABASE_URL")
"""
DECOUPLE = """
import os
class UndefinedValueError(Exception): ...
def config(name):
    if name in os.environ:
        return os.environ[name]
    raise UndefinedValueError(f"{name} not found. Declare it as envvar or define a default value.")
url = config("SHOP_DATABASE_URL")
"""
GETENV = """
import os
from urllib.parse import urlsplit
host = os.getenv("SHOP_DATABASE_URL").split("/")
"""
REFUSED = """
import os
def connect(url):
    raise OSError(f"could not connect to {url}")
connect(os.environ.get("SHOP_DATABASE_URL", "localhost"))
"""


def message(tmp_path: Path, source: str, python: str = sys.executable, **variables: str) -> str:
    (tmp_path / "shop.py").write_text(source)
    with pytest.raises(AppRaisesError) as caught:
        look(App("shop:app", "", python, str(tmp_path)), variables)
    return str(caught.value).splitlines()[-1].strip()


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DATABASE_URL", "postgresql://…")
    monkeypatch.setenv("MALL_SECRET", "x")
    monkeypatch.setenv("UNRELATED", "x")


@pytest.mark.usefixtures("exported")
def test_fields_of_settings_without_a_value_are_reported_as_the_variables_they_may_be(tmp_path: Path) -> None:
    assert message(tmp_path, PYDANTIC).endswith(
        "sees only what you hand on, and it looked for more: --env SHOP_DATABASE_URL --env MALL_SECRET"
    )
    assert message(tmp_path, PYDANTIC, SHOP_DATABASE_URL="x").endswith("for more: --env MALL_SECRET")


@pytest.mark.usefixtures("exported")
def test_a_variable_that_an_error_speaks_of_is_to_be_handed_on(tmp_path: Path) -> None:
    assert message(tmp_path, DECOUPLE).endswith("it looked for more: --env SHOP_DATABASE_URL")
    assert message(tmp_path, DJANGO_ENVIRON, python_with(DJANGO)).endswith(
        "you hand on: --env SHOP_DATABASE_URL"
    )


@pytest.mark.usefixtures("exported")
def test_a_variable_looked_up_in_vain_is_reported_whatever_comes_of_it(tmp_path: Path) -> None:
    sentence = message(tmp_path, GETENV)
    assert "it looked for more: --env SHOP_DATABASE_URL. If that is not it" in sentence
    assert message(tmp_path, REFUSED).endswith(
        "or say where it is: it lacks what it looked up in the environment: --env SHOP_DATABASE_URL"
    )
    assert "SHOP_DATABASE_URL" not in message(tmp_path, REFUSED, SHOP_DATABASE_URL="here")


def test_else_it_is_reported_that_it_sees_little_and_how_to_see_it_as_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SHOP_DATABASE_URL", raising=False)
    sentence = message(tmp_path, GETENV)
    assert "sees only PATH and the like: hand on by --env NAME what its settings need" in sentence
    assert f"cd {tmp_path} && env -i " in sentence
    assert sentence.endswith(f"{sys.executable} -c 'import shop'")
