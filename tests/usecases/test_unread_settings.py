"""Settings of the user's own do not race in the place of those that are shown."""

import urllib.request
from pathlib import Path

import pytest
from tests.usecases.served import standing

from velodrome.model.trial import Contestant
from velodrome.usecases import apps
from velodrome.usecases.apps import AppSpec, lab_for, look
from velodrome.usecases.compare import lay_out, unread
from velodrome.usecases.terms import Terms

APP = """
import os, threading

def app(environ, start_response):
    body = f"{os.environ.get('OF_A_FILE')} {threading.current_thread().name}".encode()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
"""
FILE = "threads = 8\npreload_app = True\nraw_env = ['OF_A_FILE=acts']\nopen('was-read', 'w').close()\n"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which gunicorn finds settings, and variables of ours that say the same."""
    (tmp_path / "shop.py").write_text(APP)
    (tmp_path / "gunicorn.conf.py").write_text(FILE)
    monkeypatch.setenv("GUNICORN_CMD_ARGS", "--env=OF_A_FILE=acts --threads=8")
    return tmp_path


@pytest.mark.parametrize("env", [(), ("GUNICORN_CMD_ARGS",)], ids=["in the folder", "handed on"])
def test_gunicorn_reads_nothing_but_its_command_line(shop: Path, env: tuple[str, ...]) -> None:
    spec = AppSpec("shop:app", cwd=str(shop), env=env)
    with (
        standing(look(spec), Contestant("gunicorn-sync"), lab_for(spec)) as booted,
        urllib.request.urlopen(booted.server.url, timeout=10) as answer,
    ):
        assert answer.read() == b"None MainThread"  # gthread answers from a pool
    assert not (shop / "was-read").exists()


def test_whoever_has_such_settings_is_warned_once_and_nobody_else(shop: Path) -> None:
    spec = AppSpec("shop:app", cwd=str(shop))
    app, lab = look(spec), lab_for(spec)
    assert list(unread(lay_out([app, app], Terms(stacks=("gunicorn-sync",)), lab), lab)) == [
        "./gunicorn.conf.py is not read while stacks are compared: gunicorn runs with the settings that are shown and "
        "no others. A command line that is pasted there reads it again, and wins where both set the same"
    ]
    assert apps.unread_settings(app, (lab.stacks["waitress"],)) == ""
    (shop / "gunicorn.conf.py").unlink()
    assert apps.unread_settings(app, (lab.stacks["gunicorn-sync"],)) == ""
    handed = look(AppSpec("shop:app", cwd=str(shop), env=("GUNICORN_CMD_ARGS",)))
    assert apps.unread_settings(handed, (lab.stacks["gunicorn-sync"],)).startswith("GUNICORN_CMD_ARGS is not")
