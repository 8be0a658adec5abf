"""Another server is started beside one that stands: its first request shows what the first one alone does."""

from pathlib import Path

import pytest
from tests.run.apps.theirs import python_with

from velodrome.guest import catalog
from velodrome.model.diagnosis import Met, Probe
from velodrome.model.trial import Contestant
from velodrome.run.instruments.situations import meet
from velodrome.run.instruments.standing import standing
from velodrome.usecases.apps import AppSpec, lab_for, look
from velodrome.usecases.bench import UNLIMITED, trial_of

WAITRESS = Contestant("waitress")
LOADS_S = 0.3
APP = f"""
import os, time
there = os.environ.get("WARM", "")
def app(environ, start_response):
    global there
    if not there:
        time.sleep({LOADS_S})
        there = "yes"
    start_response("200 OK", [("Content-Length", "2")])
    return [b"hi"]
"""
ONE_LEFT = """
import os
if os.path.exists("begun"):
    raise RuntimeError("only one may run")
open("begun", "w").close()
"""


def met(folder: Path, source: str, on: Contestant = WAITRESS, **settings: float) -> Met:
    (folder / "cold.py").write_text(source)
    spec = AppSpec("cold:app", python_with(), str(folder))
    app, lab = look(spec), lab_for(spec)
    (folder / "begun").unlink(missing_ok=True)
    trial = trial_of("doctor", app.recipe, on, UNLIMITED, app=app)
    with standing(trial, lab) as server:
        return meet(server, Probe("renew", "servers started", "cold", settings))


@pytest.mark.parametrize(
    ("source", "hits"), [(APP, 2), (APP.replace('get("WARM", "")', 'get("HOME", "/")'), 0)]
)
def test_servers_that_are_started_show_whether_their_first_request_is_slow(
    source: str, hits: int, tmp_path: Path
) -> None:
    found = met(tmp_path, source, started=1, rounds=2)
    assert (found.hits, found.of) == (hits, 2)
    assert (found.figures["slowest_ms"] >= 1000 * LOADS_S) is bool(hits)


def test_the_requests_after_the_first_are_not_slow(tmp_path: Path) -> None:
    found = met(tmp_path, APP, rounds=3)
    assert (found.hits, found.of) == (0, 3)


def test_an_app_that_runs_only_once_is_not_judged_by_a_second_server(tmp_path: Path) -> None:
    found = met(tmp_path, ONE_LEFT + APP, started=1, rounds=2)
    assert (found.hits, found.of) == (0, 0)


ASGI = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})
"""


@pytest.mark.parametrize(
    ("stack", "workers", "source"),
    [("gunicorn-gthread", 1, APP), ("pyuwsgi", 1, APP), ("uvicorn", 2, ASGI)],
)
def test_a_server_that_is_said_to_replace_a_worker_does(
    stack: str, workers: int, source: str, tmp_path: Path
) -> None:
    server = catalog.stack(stack).server
    assert server is not None
    assert server.replaces({"workers": workers})
    assert met(tmp_path, source, Contestant(stack, {"workers": workers}), replaced=1, rounds=1).of == 1


@pytest.mark.parametrize(("stack", "workers"), [("uvicorn", 1), ("hypercorn", 2), ("granian-asgi", 2)])
def test_others_are_not_said_to_replace_one(stack: str, workers: int) -> None:
    server = catalog.stack(stack).server
    assert server is not None
    assert not server.replaces({"workers": workers})
