"""After clients have come and gone, the first load of a server costs what the next ones do."""

import http.client
import socket
import sys
from pathlib import Path

import pytest

from velodrome.guest import catalog
from velodrome.run import idle_clients
from velodrome.run.drivers.driver import Target
from velodrome.run.environments import guest_tree
from velodrome.run.environments.environment import environment_for
from velodrome.run.machine.limits import Bounds
from velodrome.run.servers import Ready, Server, Serving, await_right_answer, fresh_port

REQUESTS = 300


def faults(pid: int) -> int:
    """Pages that a process had to be given so far."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


@pytest.mark.skipif(sys.platform != "linux", reason="page faults are read from /proc")
def test_a_server_on_asyncio_is_not_given_new_memory_for_every_request_of_its_first_load() -> None:
    stack, recipe = catalog.stack("asyncio-streams"), catalog.recipe("hello")
    serving = Serving(stack, recipe, environment_for(stack).python, guest_tree.export(), fresh_port())
    with Server(serving, Bounds("nothing")) as server:
        ready = await_right_answer(Target(server.url), server.exit, server.started, 20.0)
        assert isinstance(ready, Ready), server.last_lines()
        idle_clients.meet_server(server.url)
        connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=10)
        before = faults(server.pid)
        for _ in range(REQUESTS):
            connection.request("GET", "/")
            connection.getresponse().read()
        assert faults(server.pid) - before < REQUESTS / 2
        connection.close()


def test_so_many_come_for_each_worker_and_all_go() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        idle_clients.meet_server(f"http://127.0.0.1:{listener.getsockname()[1]}/", workers=3)
        listener.settimeout(10)
        for _ in range(3 * idle_clients.EACH):
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.recv(1) == b"", "it sent something"
        listener.settimeout(0.05)
        with pytest.raises(TimeoutError):
            listener.accept()


def test_a_server_that_is_gone_is_no_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    idle_clients.meet_server(f"http://127.0.0.1:{port}/")
