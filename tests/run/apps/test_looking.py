"""What an app is, seen from its own interpreter; and what is reported where it cannot be looked at."""

import json
import os
import socket
import time
from pathlib import Path

import psutil
import pytest
from tests.run.apps.theirs import SHOP, python_with

from velodrome.model.app import App
from velodrome.model.errors import (
    AppEndsError,
    AppFolderError,
    AppHangsError,
    AppInterpreterError,
    AppNameError,
    AppPathError,
    AppRaisesError,
    AppUnfitError,
    InterpreterNotFoundError,
)
from velodrome.run.apps.inspect import look
from velodrome.run.environments.interpreter import find_interpreter

OWN = str(find_interpreter(None).path)


def looked(app: str, interface: str = "", patience_s: float = 20.0, **variables: str) -> App:
    return look(at(app, interface=interface), variables, patience_s=patience_s)


def at(path: str, python: str = OWN, cwd: Path = SHOP, interface: str = "") -> App:
    return App(path, interface, python, str(cwd), named_interface=interface)


@pytest.mark.parametrize(
    ("app", "path", "interface", "form"),
    [
        ("plain:application", "plain:application", "wsgi", "application"),
        ("plain", "plain:application", "wsgi", "application"),
        ("plain:instance", "plain:instance", "wsgi", "application"),
        ("plain:create_app", "plain:create_app", "wsgi", "factory"),
        ("plain:create_named('test')", "plain:create_named('test')", "wsgi", "factory"),
        (
            "plain:create_named('test', debug=True)",
            "plain:create_named('test', debug=True)",
            "wsgi",
            "factory",
        ),
        ("plain:Callable", "plain:Callable", "wsgi", "factory"),
        ("plain:asgi", "plain:asgi", "asgi", "application"),
        ("plain:Double", "plain:Double", "asgi", "asgi2"),
        ("plain:double", "plain:double", "asgi", "asgi2"),
        ("plain:rsgi", "plain:rsgi", "rsgi", "application"),
    ],
)
def test_an_app_is_recognised_by_how_it_is_called(app: str, path: str, interface: str, form: str) -> None:
    found = looked(app)
    assert (found.path, found.interface, found.form) == (path, interface, form)


@pytest.mark.parametrize(
    ("app", "given", "interface", "form"),
    [
        ("awaited:create_asgi", "", "asgi", "coroutine"),
        ("awaited:create_asgi", "asgi", "asgi", "coroutine"),
        ("awaited:create_asgi('mall')", "", "asgi", "coroutine"),
        ("awaited:create_asgi('mall')", "asgi", "asgi", "coroutine"),
        ("awaited:create_anything", "asgi", "asgi", "coroutine"),
        ("awaited:create_loose", "wsgi", "wsgi", "factory"),
        ("plain:create_named('test')", "wsgi", "wsgi", "factory"),
        ("plain:Double", "asgi", "asgi", "asgi2"),
    ],
)
def test_a_factory_is_one_also_where_it_awaits_or_its_user_says_what_it_makes(
    app: str, given: str, interface: str, form: str
) -> None:
    found = looked(app, given)
    assert (found.path, found.interface, found.form) == (app, interface, form)


@pytest.mark.parametrize(
    ("app", "given", "error", "sentence"),
    [
        ("awaited:create_wsgi", "", AppUnfitError, "makes the function application, which must be awaited"),
        ("awaited:create_rsgi", "", AppUnfitError, "only ASGI and aiohttp servers"),
        ("awaited:create_nothing", "", AppUnfitError, "makes None, which must be awaited"),
        ("awaited:create_asgi", "wsgi", AppUnfitError, "Name a function that is not async"),
        ("awaited:fails", "", AppRaisesError, "ValueError: no such shop"),
    ],
)
def test_what_is_awaited_in_vain_is_refused(
    app: str, given: str, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        looked(app, given)


def test_what_takes_any_arguments_has_to_be_stated() -> None:
    with pytest.raises(AppUnfitError, match="--interface wsgi"):
        looked("plain:anything")
    assert looked("plain:anything", interface="wsgi").form == "application"


@pytest.mark.parametrize(
    ("app", "error", "sentence"),
    [
        ("plain:aplication", AppNameError, "has no 'aplication'. Nearest: application"),
        ("raises:app", AppRaisesError, "raises.py, line 2, in load_settings"),
        ("lacks:app", AppRaisesError, "surely_not_installed_anywhere is not installed for"),
        (
            "no_such_module:app",
            AppRaisesError,
            "It was looked for in .*; name the folder it lies in with --cwd",
        ),
        ("leaves:app", AppEndsError, r"sys.exit\(3\)"),
        ("plain:create_named", AppUnfitError, r"needs the argument name.*plain:create_named\(<name>\)"),
        (
            "plain:Configured",
            AppUnfitError,
            r"is the class Configured, which needs the argument configuration",
        ),
        ("plain:create_configured", AppUnfitError, r"plain:create_configured\(<config>, debug=<debug>\)"),
        (
            "plain:make_shop",
            AppUnfitError,
            r"needs the arguments config, name.*plain:make_shop\(<config>, <name>\)",
        ),
        ("plain:create_named(1/0)", AppPathError, "neither a name nor a call with plain values"),
        ("plain:nothing", AppUnfitError, "is None, which servers cannot call"),
        ("plain:number", AppUnfitError, "is an int, which servers cannot call"),
        ("plain.py:application", AppPathError, "'plain.py:application'|no name of a module|a file"),
        (":app", AppPathError, "module:attribute"),
    ],
)
def test_what_is_wrong_with_an_app_is_reported_with_the_cure(
    app: str, error: type[Exception], sentence: str
) -> None:
    if app.startswith("plain.py"):
        app = "plain.py/x:application"
    with pytest.raises(error, match=sentence):
        looked(app)


def test_a_traceback_ends_at_the_users_own_line() -> None:
    with pytest.raises(AppRaisesError) as caught:
        looked("raises:app")
    assert caught.value.lines == (
        "raises.py, line 5, in <module>",
        "    settings = load_settings()",
        "raises.py, line 2, in load_settings",
        '    return {}["DATABASE_URL"]',
        "KeyError: 'DATABASE_URL'",
    )


def test_a_variable_that_it_wants_is_reported_with_how_to_hand_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_DATABASE_URL", raising=False)
    with pytest.raises(AppRaisesError, match="not set here either: --env SHOP_DATABASE_URL=…"):
        looked("raises_variable:app")
    monkeypatch.setenv("SHOP_DATABASE_URL", "postgresql://…")
    with pytest.raises(AppRaisesError, match=r"sees only what you hand on: --env SHOP_DATABASE_URL$"):
        looked("raises_variable:app")


def test_a_database_that_is_not_there_is_to_be_started() -> None:
    with socket.socket() as bound:  # bound and not listening: nobody else gets the port
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(
            AppRaisesError, match=r"(?s)ConnectionRefusedError.*does not answer: start it before"
        ):
            looked("raises_refused:app", PORT=str(bound.getsockname()[1]))


def test_a_folder_and_an_interpreter_that_are_not_there_are_reported() -> None:
    with pytest.raises(AppFolderError, match="there is no such folder"):
        look(at("plain:application", cwd=Path("/no/such/folder")))
    with pytest.raises(InterpreterNotFoundError):
        look(at("plain:application", "/no/such/python"))


def test_an_interpreter_too_old_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("velodrome.run.apps.inspect.OLDEST_PYTHON", (3, 99))
    with pytest.raises(AppInterpreterError, match=r"an app needs 3\.99 or newer"):
        looked("plain:application")


@pytest.mark.parametrize("version", ["3.6", "3.7"])
def test_a_real_interpreter_too_old_is_reported(version: str) -> None:
    try:
        python = str(find_interpreter(version).path)
    except InterpreterNotFoundError as error:
        pytest.skip(str(error))
    with pytest.raises(AppInterpreterError, match=rf"is Python {version}\.\d+.* 3\.8 or newer"):
        look(at("plain:application", python))


def children() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


def test_an_app_that_serves_itself_is_ended_though_it_is_deaf() -> None:
    before = children()
    with pytest.raises(AppHangsError, match=r"Running on http://127\.0\.0\.1:\d+(.|\n)*__main__"):
        looked("serves_itself", patience_s=1.0)
    assert children() <= before


def test_an_app_that_goes_into_the_background_is_found_there_and_ended(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    with pytest.raises(AppEndsError, match="exit 0"):
        looked("daemonises", PID_FILE=str(pid_file))
    until = time.monotonic() + 5
    while (
        time.monotonic() < until
        and pid_file.exists()
        and psutil.pid_exists(int(pid_file.read_text() or 0) or 1 << 30)
    ):
        time.sleep(0.01)
    assert not pid_file.exists() or not psutil.pid_exists(int(pid_file.read_text() or 0) or 1 << 30)


def test_megabytes_forks_threads_and_another_folder_do_no_harm() -> None:
    before = children()
    found = looked("troublesome")
    assert found.path == "troublesome:application"
    assert children() <= before


def test_nothing_is_written_beside_the_app() -> None:
    looked("plain:application")
    assert not (SHOP / "__pycache__").exists()


def test_the_variables_of_its_user_and_no_others_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "x")
    (tmp_path / "dumping.py").write_text(
        "import json, os\nopen('env.json', 'w').write(json.dumps(dict(os.environ)))\n"
        "def app(environ, start_response): ...\n"
    )
    look(at("dumping:app", cwd=tmp_path), {"SHOP_NAME": "blue"})
    seen = json.loads((tmp_path / "env.json").read_text())
    assert seen["SHOP_NAME"] == "blue"
    assert "SECRET_OF_OURS" not in seen
    assert seen["PATH"].split(os.pathsep)[0] == str(Path(OWN).parent)


def test_a_flask_app_in_an_environment_without_pip_is_reported_with_its_packages() -> None:
    python = python_with("flask==3.1.2")
    found = look(at("flask_shop:app", python))
    assert (found.interface, found.what) == ("wsgi", "a Flask")
    assert found.packages["flask"] == "3.1.2"
    assert not {"pip", "gunicorn"} & set(found.packages)
    assert look(at("flask_shop:create_app", python)).form == "factory"
