"""A server sees its own environment and the guest tree only, and leaves nothing when it is stopped."""

import os
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.run import made
from tests.waiting import wait_until

from velodrome.guest import catalog
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.model.errors import StartRefusedError
from velodrome.run import servers
from velodrome.run.drivers.driver import Target
from velodrome.run.environments import guest_tree
from velodrome.run.environments.interpreter import find_interpreter
from velodrome.run.machine.limits import Bounds
from velodrome.run.servers import Ready, Server, Serving, await_right_answer

HOSTILE = str(Path(__file__).parents[2] / "truth" / "targets" / "hostile.py")
NO_BOUNDS = Bounds("nothing")


def serving(does: str = "answer", recipe: Recipe = made.HELLO) -> Serving:
    return Serving(
        stack=catalog.stack("hostile", [HOSTILE]),
        recipe=recipe,
        python=find_interpreter(None).path,
        guest_tree=guest_tree.export([HOSTILE]),
        port=servers.fresh_port(),
        knobs={"does": does},
    )


def started(what: Serving) -> Server:
    server = Server(what, NO_BOUNDS)
    target = replace(Target.of_recipe(server.url, what.recipe), expect_body=None)
    ready = await_right_answer(target, server.exit, server.started, 10.0)
    assert isinstance(ready, Ready), (ready, server.last_lines())
    return server


def prints(code: str) -> Stack:
    def command(launch: Launch) -> Process:
        return Process(("-c", code), env={"OF_STACK": "set"})

    return replace(catalog.stack("hostile", [HOSTILE]), command=command)


def output(code: str) -> str:
    with Server(replace(serving(), stack=prints(code)), NO_BOUNDS) as server:
        wait_until(lambda: server.exit() is not None)
        return "\n".join(server.last_lines())


def test_a_server_starts_answers_and_stops_without_a_trace() -> None:
    server = started(serving())
    scratch = Path(os.readlink(f"/proc/{server.pid}/cwd"))
    assert scratch.is_dir()
    assert server.command[0] == str(find_interpreter(None).path)
    stopped = server.stop()
    assert stopped.left == ()
    assert not stopped.ending.hung
    assert not scratch.exists()
    assert server.stop() is stopped


def test_a_server_deaf_to_its_stop_signal_is_killed_after_the_deadline() -> None:
    server = started(serving("ignore-stop"))
    began = time.monotonic()
    stopped = server.stop(0.3)
    assert 0.3 <= time.monotonic() - began < 4
    assert stopped.ending.hung
    assert stopped.left == ()


def test_a_listener_left_on_the_port_by_somebody_else_is_reported() -> None:
    what = serving("share-port")
    server = started(what)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind((what.host, what.port))
        other.listen()
        assert server.stop().left == (f"a listener on port {what.port}",)


def test_a_server_does_not_see_the_hosts_packages() -> None:
    sentence = output(
        "import sys\ntry: import psutil\nexcept ImportError: print([p for p in sys.path if 'src' in p])"
    )
    assert sentence == "[]"


def test_a_server_sees_guest_but_nothing_else_of_velodrome() -> None:
    code = (
        "import velodrome.guest.recipe\ntry: import velodrome.model\nexcept ImportError: print('guest only')"
    )
    assert output(code) == "guest only"


def test_a_server_gets_its_recipe_and_nothing_of_our_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "x")
    code = (
        "import os; from velodrome.guest.recipe import served_here\n"
        "print(served_here()[0].name, os.environ.get('SECRET_OF_OURS'), os.environ['OF_STACK'],"
        " os.environ['HOME'] == os.environ['TMPDIR'] == os.getcwd())"
    )
    assert output(code) == "hello None set True"


def test_an_interpreter_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(StartRefusedError, match="/no/python cannot be executed"):
        Server(replace(serving(), python=Path("/no/python")), NO_BOUNDS)
