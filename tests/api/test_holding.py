"""Where an app is that a test or a program holds as an object of some framework's class."""

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from velodrome.api.apps import app_spec
from velodrome.model.errors import AppInProgramError, AppInTestError, UsageError

FILES = {
    "framework_of_theirs.py": "class App:\n    def __call__(self, environ, start_response): ...\n",
    "held_shop/__init__.py": "from held_shop.wsgi import application\n",
    "held_shop/wsgi.py": "from framework_of_theirs import App\n\nif True:\n    application = App()\n",
    "held_shop/making.py": (
        "from framework_of_theirs import App\n\ndef create_app():\n    made = App()\n    return made\n"
    ),
    "held_tests/test_with_ours.py": "from velodrome import ms\nfrom held_shop.wsgi import application as app\n",
    "held_tests/helpers.py": "import pytest\nfrom held_shop.wsgi import application\n",
    "held_tests/test_making.py": (
        "from velodrome import ms\nfrom held_shop.making import create_app\nmade = create_app()\n"
    ),
    "held_tests/test_plain.py": "from held_shop.making import create_app\nmade = create_app()\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with an app, and tests beside it in which it is imported first."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / "held_tests"))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith(("held_", "framework_of", "test_", "helpers")):
            del sys.modules[name]


def found(app: object, cwd: str = "") -> tuple[str, str, str]:
    spec = app_spec(app, (), cwd=cwd)
    return spec.app, spec.cwd, spec.source


def test_an_app_is_its_own_modules_and_not_that_of_the_test_which_imported_it(project: Path) -> None:
    app = import_module("test_with_ours").app
    import_module("helpers")
    assert found(app) == ("held_shop.wsgi:application", str(project), "")


def test_another_folder_to_run_in_keeps_the_one_it_is_imported_from(project: Path, tmp_path: Path) -> None:
    app = import_module("held_shop.wsgi").application
    elsewhere = tmp_path / "elsewhere"
    assert found(app, cwd=str(elsewhere)) == ("held_shop.wsgi:application", str(elsewhere), str(project))
    assert found(app, cwd=str(project)) == ("held_shop.wsgi:application", str(project), "")


def test_what_only_a_test_holds_is_served_from_there_unless_it_needs_velodrome(project: Path) -> None:
    assert found(import_module("test_plain").made) == ("test_plain:made", str(project / "held_tests"), "")
    with pytest.raises(AppInTestError, match=r"(?s)'made' of /.*/test_making.py.*'shop"):
        found(import_module("test_making").made)


def test_what_a_fixture_made_is_in_no_module(project: Path) -> None:
    with pytest.raises(UsageError, match="'shop:create_app'"):
        found(import_module("held_shop.making").create_app())


def test_the_program_that_runs_is_not_run_once_more(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make: Callable[[], object] = import_module("held_shop.making").create_app
    program = ModuleType("__main__")
    program.__file__ = str(tmp_path / "try_it.py")
    program.__dict__["app"] = make()
    monkeypatch.setitem(sys.modules, "__main__", program)
    with pytest.raises(AppInProgramError, match=r"(?s)__main__.* 'try_it:app'"):
        found(program.__dict__["app"])
    # Imported there, it is another's.
    program.__dict__["app"] = import_module("held_shop").application
    assert found(program.__dict__["app"])[0] == "held_shop.wsgi:application"
