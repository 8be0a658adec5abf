"""An app named by its file: imported as its user's own tools would import it."""

from pathlib import Path

import pytest
from tests.run.apps.theirs import python_with
from tests.usecases.served import standing

from velodrome.judge.deploying import deploy_app
from velodrome.model.app import App
from velodrome.model.errors import AppPathError, AppRaisesError
from velodrome.model.trial import Contestant
from velodrome.usecases.apps import AppSpec, by_file, lab_for, look

APP = """
def app(environ, start_response):
    start_response("200 OK", [("Content-Length", str(len(GREETING)))])
    return [GREETING]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """One with a package in `src/`, which imports itself by its name, and a script beside it."""
    shop = tmp_path / "my project" / "src" / "shop"
    shop.mkdir(parents=True)
    (shop / "__init__.py").write_text("")
    (shop / "words.py").write_text("GREETING = b'hello'\n")
    (shop / "wsgi.py").write_text("from shop.words import GREETING\n" + APP)
    (shop.parents[1] / "single.py").write_text("GREETING = b'single'\n" + APP)
    return shop.parents[1]


@pytest.mark.parametrize(
    ("named", "module", "source"),
    [
        ("shop.wsgi:app", "shop.wsgi:app", ""),
        ("single.py:app", "single:app", ""),
        ("src/shop/wsgi.py:app", "shop.wsgi:app", "src"),
        ("./src/shop/__init__.py", "shop", "src"),
        ("src/../src/shop/wsgi.py:make('a:b')", "shop.wsgi:make('a:b')", "src/../src"),
    ],
)
def test_a_module_begins_below_the_last_folder_that_is_no_package(
    project: Path, named: str, module: str, source: str
) -> None:
    assert by_file(named, str(project)) == (module, source)


def test_a_whole_path_is_imported_from_its_folder_wherever_one_is(project: Path) -> None:
    assert by_file(f"{project}/single.py:app", "/") == ("single:app", str(project))
    assert by_file(f"{project}/single.py:app", str(project)) == ("single:app", "")


def test_a_folder_is_a_package_without_a_mark_where_its_files_import_from_it(project: Path) -> None:
    (project / "site" / "views").mkdir(parents=True)
    (project / "site" / "views" / "main.py").write_text("from ..words import GREETING\n")
    assert by_file("site/views/main.py:app", str(project)) == ("site.views.main:app", "")


def test_what_is_no_file_or_no_module_is_reported(project: Path) -> None:
    with pytest.raises(AppPathError, match=r"there is no file /.*/my project/src/gone\.py"):
        by_file("src/gone.py:app", str(project))
    (project / "my-shop.py").write_text(APP)
    with pytest.raises(AppPathError, match="'my-shop' is no name of a module"):
        by_file("my-shop.py:app", str(project))


def test_an_app_in_a_source_folder_stands_also_where_its_path_has_blanks(project: Path) -> None:
    spec = AppSpec("src/shop/wsgi.py:app", cwd=str(project))
    app = look(spec)
    assert (app.path, app.source, app.cwd) == ("shop.wsgi:app", "src", str(project))
    for stack in ("waitress", "gunicorn-sync"):
        with standing(app, Contestant(stack), lab_for(spec)) as booted:
            assert booted.wrong == ""


def test_what_is_pasted_names_the_source_folder() -> None:
    app = App("shop.wsgi:app", "wsgi", "python", "/shop", source="src", packages={"waitress": "3.0.2"})
    lab = lab_for(AppSpec("shop.wsgi:app"))
    pasted = deploy_app(app, Contestant("gunicorn-sync"), lab.stacks["gunicorn-sync"], {})
    assert "PYTHONPATH=src python -m gunicorn " in pasted


def test_a_package_that_lies_in_src_is_reported_with_the_path_to_add(project: Path) -> None:
    with pytest.raises(
        AppRaisesError, match=r"shop lies in /.*/src: put that on its path with --env PYTHONPATH=src$"
    ):
        look(AppSpec("shop.wsgi:app", python_with(), str(project)))
    assert (
        look(AppSpec("shop.wsgi:app", python_with(), str(project), ("PYTHONPATH=src",))).interface == "wsgi"
    )
