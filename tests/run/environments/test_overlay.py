"""A server beside a user's own packages: theirs stay as they are, and win."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.run.apps.theirs import SHOP, python_with

from velodrome.guest import catalog
from velodrome.guest.apps.surroundings import normal
from velodrome.model.app import App
from velodrome.model.errors import EnvironmentFailedError, InterpreterNotFoundError
from velodrome.run.environments import guest_tree
from velodrome.run.environments.environment import overlay_for
from velodrome.run.environments.installing import run_uv
from velodrome.run.environments.interpreter import find_interpreter, theirs

WAITRESS = catalog.stack("waitress")


def app(python: str) -> App:
    return App("plain:application", "wsgi", python, str(SHOP))


def says(python: Path, code: str) -> list[str]:
    finished = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    return json.loads(finished.stdout)  # type: ignore[no-any-return]


def test_what_is_missing_is_laid_over_and_what_is_there_is_not_installed_again() -> None:
    python = python_with("flask==3.1.2")
    made = overlay_for(WAITRESS, app(python))
    assert made.packages["waitress"]
    assert made.packages["flask"] == "3.1.2"
    assert "waitress" not in theirs(python, guest_tree.export()).packages
    home = made.python.parents[1]
    laid = {path.name for path in next((home / "lib").glob("python*/site-packages")).iterdir()}
    assert "waitress" in laid
    assert not {"flask", "werkzeug", "jinja2"} & laid
    assert overlay_for(WAITRESS, app(python)) == made


def test_their_folders_come_before_ours() -> None:
    made = overlay_for(WAITRESS, app(python_with("flask==3.1.2")))
    code = (
        "import json, flask, waitress, sys; print(json.dumps([flask.__file__, waitress.__file__, *sys.path]))"
    )
    flask, waitress, *path = says(made.python, code)
    folder = {name: str(Path(file).parents[1]) for name, file in (("flask", flask), ("waitress", waitress))}
    assert path.index(folder["flask"]) < path.index(folder["waitress"])


def test_their_version_wins_over_the_one_a_stack_pins() -> None:
    python = python_with("waitress==3.0.1")
    made = overlay_for(WAITRESS, app(python))
    assert made.packages["waitress"] == "3.0.1"
    assert says(made.python, "import json, waitress; print(json.dumps([waitress.__file__]))")[0].startswith(
        str(Path(python).parents[1])
    )


def test_a_server_that_is_pinned_too_new_for_theirs_is_had_in_a_version_that_goes_with_them() -> None:
    stack = catalog.stack("gunicorn-gevent")
    pinned = dict(line.split("==") for line in stack.requires)
    made = overlay_for(stack, app(python_with("greenlet==3.1.1")))
    assert made.packages["greenlet"] == "3.1.1"
    assert int(made.packages["gevent"].partition(".")[0]) < int(pinned["gevent"].partition(".")[0])
    assert made.packages["gunicorn"] == pinned["gunicorn"], "what is in nobody's way stays as pinned"
    assert says(made.python, "import json, gevent; print(json.dumps([gevent.__version__]))") == [
        made.packages["gevent"]
    ]


def test_a_server_that_needs_other_versions_is_reported_and_nothing_is_forced() -> None:
    with pytest.raises(
        EnvironmentFailedError, match=r"needs other versions(.|\n)*click(.|\n)*race the other stacks"
    ):
        overlay_for(catalog.stack("uvicorn"), app(python_with("click==6.7")))


def test_what_their_own_pth_files_name_is_imported(tmp_path: Path) -> None:
    source = tmp_path / "src"
    source.mkdir()
    (source / "shop_in_development.py").write_text("name = 'editable'\n")
    assert (
        run_uv(
            ("venv", "--no-project", f"--python={find_interpreter(None).path}", "env"), tmp_path
        ).returncode
        == 0
    )
    packages = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    (packages / "shop.pth").write_text(f"{source}\n")
    made = overlay_for(WAITRESS, app(str(tmp_path / "env" / "bin" / "python")))
    code = "import json, waitress, shop_in_development; print(json.dumps([shop_in_development.name]))"
    assert says(made.python, code) == ["editable"]


@pytest.mark.skipif(not Path("/usr/lib/python3/dist-packages").is_dir(), reason="no Debian")
def test_a_system_python_has_its_dist_packages() -> None:
    assert "/usr/lib/python3/dist-packages" in theirs("/usr/bin/python3", guest_tree.export()).folders


def test_an_old_interpreter_gets_the_newest_server_that_runs_on_it() -> None:
    try:
        python = str(find_interpreter("3.8").path)
    except InterpreterNotFoundError as error:
        pytest.skip(str(error))
    made = overlay_for(catalog.stack("gunicorn-sync"), app(python))
    assert made.version.startswith("3.8")
    assert int(made.packages["gunicorn"].partition(".")[0]) < 25


def test_names_of_packages_are_compared_as_installers_do() -> None:
    assert normal("Flask_SQLAlchemy") == normal("flask-sqlalchemy") == normal("flask.sqlalchemy")


def test_a_server_of_theirs_that_is_too_old_for_a_stack_is_reported() -> None:
    with pytest.raises(
        EnvironmentFailedError, match=r"it needs gunicorn 24 or newer, and 21\.2\.0 is installed"
    ):
        overlay_for(catalog.stack("gunicorn-asgi"), app(python_with("gunicorn==21.2.0")))
