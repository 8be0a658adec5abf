"""Where an app that is given as an object can be imported from by a server process."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from velodrome.api.apps import app_spec
from velodrome.model.errors import AppNotFoundError


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package with an app in it, imported."""
    (tmp_path / "a_shop").mkdir()
    (tmp_path / "a_shop" / "__init__.py").write_text("")
    (tmp_path / "a_shop" / "wsgi.py").write_text(
        "class App:\n    pass\napplication = App()\ndef plain(e, s): ...\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("a_shop.wsgi")
    for name in ("a_shop", "a_shop.wsgi"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["application", "plain"])
def test_an_object_is_found_in_its_module(shop: ModuleType, tmp_path: Path, name: str) -> None:
    spec = app_spec(getattr(shop, name), ())
    assert (spec.app, spec.cwd, spec.python) == (f"a_shop.wsgi:{name}", str(tmp_path), sys.executable)


def test_a_file_that_was_imported_by_another_name_is_a_module_by_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text("def app(environ, start_response): ...\n")
    spec = importlib.util.spec_from_file_location("some.other.name", tmp_path / "test_shop.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["some.other.name"] = module
    try:
        spec.loader.exec_module(module)
        found = app_spec(module.app, ())
        assert (found.app, found.cwd) == ("test_shop:app", str(tmp_path))
    finally:
        del sys.modules["some.other.name"]


def test_an_object_in_no_module_is_refused_with_what_to_do() -> None:
    with pytest.raises(AppNotFoundError, match="is in no module, so a server process cannot import it"):
        app_spec(lambda environ, start_response: [], ())


def test_a_path_is_taken_as_it_is() -> None:
    spec = app_spec("shop.wsgi:application", (), python="/venv/bin/python", cwd="/srv", env=["A=1"])
    assert (spec.app, spec.cwd, spec.python, spec.env) == (
        "shop.wsgi:application",
        "/srv",
        "/venv/bin/python",
        ("A=1",),
    )
