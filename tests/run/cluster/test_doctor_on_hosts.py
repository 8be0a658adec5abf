"""Examinations on the hosts of agents: each app whole on one host, what is wrong there, and hosts that are lost."""

import json
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from tests.run.cluster.posing import HOST, SOON_S, agent, races_of
from tests.run.supervision.ends import living
from tests.waiting import eventually

from velodrome.model.app import Content, Request
from velodrome.model.condition import read
from velodrome.model.diagnosis import Examination
from velodrome.model.errors import (
    ExaminationRefusedError,
    ExaminersGoneError,
    NoAgentsError,
    UnknownNameError,
)
from velodrome.model.load import Limits
from velodrome.model.results import adapter
from velodrome.run.cluster import coordinator
from velodrome.usecases.apps import AppSpec, ServedSpec
from velodrome.usecases.diagnose import DoctorSpec
from velodrome.usecases.diagnose_on_hosts import diagnose_over, diagnose_there
from velodrome.usecases.events import Events
from velodrome.usecases.terms import Knobs

APP = """
import time

async def answer(send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
    await send({"type": "http.response.body", "body": b"x"})

async def well(scope, receive, send):
    await answer(send)

async def blocking(scope, receive, send):
    time.sleep(0.02)
    await answer(send)
"""


@pytest.fixture(autouse=True)
def own_lock(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the agents here not wait for what else measures: no figure is looked at."""
    monkeypatch.setenv("VELODROME_LOCK", str(tmp_path_factory.mktemp("lock") / "measuring.lock"))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(APP)
    return tmp_path


def spec(shop: Path, app: str) -> DoctorSpec:
    of_app = AppSpec(f"shop:{app}", cwd=str(shop), python=sys.executable)
    return DoctorSpec(ServedSpec(of_app), "uvicorn", budget_s=60, only=("blocking-call",))


class Messages(Events):
    """Keeps the messages on the way to the result."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def preparing(self, text: str) -> None:
        self.texts.append(text)


def test_a_specification_comes_to_a_host_as_it_is() -> None:
    app = AppSpec(
        "shop:app",
        env=("KEY=value",),
        requests=(Request("one", "/one", body=Content.of(b"\xff\x00"), headers=(("A", "b"),)),),
        upstreams=("PAYMENTS_URL=latency:50ms",),
        headers=(("Host", "shop"),),
    )
    there = DoctorSpec(
        ServedSpec(app),
        "uvicorn",
        Knobs(workers=2, named={"keepalive": 5}),
        Limits(1),
        slo=(read("p99 < 20ms"),),
    )
    plain = json.loads(json.dumps(adapter(DoctorSpec).dump_python(there, mode="json")))
    assert adapter(DoctorSpec).validate_python(plain) == there


def test_a_host_says_what_is_wrong_with_an_app_and_goes_on_with_the_next(shop: Path) -> None:
    specs = [spec(shop, "missing"), spec(shop / "nowhere", "well"), spec(shop, "missing")]
    with coordinator.coordinating(HOST, 0, 0) as address, agent(address, "a"):
        found = dict(diagnose_over(specs, address, None, Events()))
    assert sorted(found) == [0, 1, 2]
    for refused in found.values():
        assert isinstance(refused, ExaminationRefusedError)
        assert (refused.name, refused.exit_code) == ("a", 2)
    assert "missing" in str(found[0])


def test_a_folder_that_is_sent_is_examined_and_what_git_ignores_stays(shop: Path) -> None:
    (shop / "shop.py").write_text(
        "from pathlib import Path\nassert not Path(__file__).with_name('.env').exists()\n" + APP
    )
    (shop / ".env").write_text("KEY=secret")
    (shop / ".gitignore").write_text(".env")
    subprocess.run(["git", "init", "-q", str(shop)], check=True)
    specs = [spec(shop, "missing"), replace(spec(shop, "missing"), send=True)]
    with coordinator.coordinating(HOST, 0, 0) as address, agent(address, "a"):
        found = dict(diagnose_over(specs, address, None, Events()))
    assert "AssertionError" in str(found[0])
    assert "'missing'" in str(found[1])


def test_what_is_unknown_or_has_nobody_is_refused_before_a_host_does_anything(shop: Path) -> None:
    with coordinator.coordinating(HOST, 0, 0) as address:
        with pytest.raises(UnknownNameError):
            list(diagnose_over([replace(spec(shop, "well"), only=("hiccups",))], address, None, Events()))
        with pytest.raises(NoAgentsError):
            diagnose_there(replace(spec(shop, "well"), agents=address), Events())


def test_where_no_host_is_left_the_command_says_how_many_are_done(shop: Path) -> None:
    messages = Messages()
    with coordinator.coordinating(HOST, 0, 0) as address, agent(address, "a") as only:
        examining = diagnose_over([spec(shop, "missing"), spec(shop, "well")], address, None, messages)
        assert next(examining)[0] == 0
        children = races_of(only.pid)
        only.kill()
        with pytest.raises(ExaminersGoneError) as gone:
            next(examining)
    assert (gone.value.done, gone.value.total) == (1, 2)
    assert eventually(lambda: not living(children), SOON_S)


@pytest.mark.exhaustive
@pytest.mark.timeout(400)
def test_each_host_examines_whole_apps_and_what_a_lost_one_had_is_examined_by_another(shop: Path) -> None:
    """The hosts are one machine, so they take turns by its measuring lock."""
    messages = Messages()
    names = ["blocking", "well", "blocking"]
    found: dict[int, Examination] = {}
    with ExitStack() as stack:
        address = stack.enter_context(coordinator.coordinating(HOST, 0, 0))
        agents = {name: stack.enter_context(agent(address, name)) for name in ("a", "b")}
        examining = diagnose_over([spec(shop, name) for name in names], address, None, messages)
        number, first = next(examining)
        assert isinstance(first, Examination)
        found[number] = first
        agents["b"].kill()
        for number, examination in examining:
            assert isinstance(examination, Examination), examination
            found[number] = examination
    assert sorted(found) == [0, 1, 2]
    for number, examination in found.items():
        causes = [cause.id for cause in examination.causes]
        assert causes == (["blocking-call"] if names[number] == "blocking" else [])
    assert any(text.startswith("a: screens") for text in messages.texts)
    assert any(text.startswith("b: ") for text in messages.texts)
    assert any("b is no longer there" in text for text in messages.texts)
