"""What is pasted is run as a user would run it, and leaves their folder as it is."""

import os
import subprocess
from pathlib import Path

from velodrome.guest import catalog
from velodrome.judge.deploying import deploy_app
from velodrome.model.app import App, ThirdParty
from velodrome.model.trial import Contestant
from velodrome.run.apps.serving import as_it_stands, script, unlike
from velodrome.run.environments.environment import Environment
from velodrome.run.servers import Serving, environment_of

GUNICORN = "python -m pip install gunicorn==23.0.0\npython -m gunicorn --bind=127.0.0.1:8000 shop:app"
WRITES = "cat > serve.py <<'END'\nprint('ours')\nEND\npython serve.py"
STACKS = catalog.stacks()


def shell(folder: Path, lines: str) -> str:
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", lines], cwd=folder, capture_output=True, text=True, timeout=20, check=True
    )
    return done.stdout


def test_what_would_be_installed_has_to_be_there_in_that_version() -> None:
    assert unlike(GUNICORN, {"gunicorn": "23.0.0"}) == ""
    assert unlike(GUNICORN, {"gunicorn": "22.0.0"}) == "gunicorn==23.0.0"
    assert unlike(GUNICORN, {}) == "gunicorn==23.0.0"
    extra = (
        "python -m pip install 'Uvicorn[standard]==1.0' typing_extensions==4.1\npython -m uvicorn shop:app"
    )
    assert unlike(extra, {"uvicorn": "1.0", "typing-extensions": "4.1"}) == ""
    assert unlike("python -m uvicorn shop:app", {}) == ""


def test_the_server_takes_the_place_of_the_shell_and_nothing_is_installed() -> None:
    text = script(GUNICORN)
    assert "pip" not in text
    assert text == "exec env python -m gunicorn --bind=127.0.0.1:8000 shop:app"
    assert script("# needs in its environment: A\nA=1 python x").splitlines()[-1] == "exec env A=1 python x"


def test_a_file_that_the_lines_write_does_not_touch_the_folder_of_the_app(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "it's theirs", tmp_path / "ours"
    theirs.mkdir()
    ours.mkdir()
    (theirs / "serve.py").write_text("print('theirs')\n")
    (theirs / "shop.py").write_text("NAME = 'cart'\n")
    (theirs / ".env").write_text("A=1\n")
    (theirs / "data").mkdir()
    lines = WRITES.replace("print('ours')", "import shop; print('ours', shop.NAME)").replace(
        "python serve.py",
        f"{os.sys.executable} serve.py",  # type: ignore[attr-defined]
    )
    assert shell(ours, script(lines, str(theirs))) == "ours cart\n"
    assert (theirs / "serve.py").read_text() == "print('theirs')\n"
    assert {path.name for path in theirs.iterdir()} == {"serve.py", "shop.py", ".env", "data"}
    assert {path.name for path in ours.iterdir()} >= {"serve.py", "shop.py", ".env", "data"}
    assert not (ours / "serve.py").is_symlink()


def test_it_sees_the_app_s_variables_and_its_own_python_and_nothing_of_ours(tmp_path: Path) -> None:
    thirds = (ThirdParty("PAYMENTS_URL", "5ms"),)
    app = App("shop:app", "wsgi", "/usr/bin/python3", str(tmp_path), variables=("KEY",), third_parties=thirds)
    environment = Environment(
        tmp_path / "env" / "bin" / "python", "3.12.1", {"gunicorn": "23.0.0"}, locked=False
    )
    stack = STACKS["gunicorn-gthread"]
    given = {
        "PATH": "/usr/bin",
        "KEY": "secret",
        "PAYMENTS_URL": "http://127.0.0.1:9",
        "PYTHONPYCACHEPREFIX": "/cache",
        "PYTHONPATH": "",
        "VELODROME_APP": "shop:app",
    }
    raced = Serving(
        stack, app.recipe, environment.python, tmp_path / "guest", 18_000, cwd=app.cwd, variables=given
    )
    lines = deploy_app(app, Contestant(stack.name), stack, environment.packages, port=18_000)
    serving = as_it_stands(raced, app, lines, environment)
    assert "127.0.0.1:18000" in serving.shell
    assert serving.cwd == str(tmp_path)
    seen = environment_of(serving, serving.process(), tmp_path)
    assert seen["PATH"].split(os.pathsep)[0] == str(environment.python.parent)
    assert (seen["KEY"], seen["PAYMENTS_URL"]) == ("secret", "http://127.0.0.1:9")
    assert not any("velodrome" in name.lower() or "guest" in value for name, value in seen.items())
