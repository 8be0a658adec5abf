import os
import socket
import subprocess
import sys

import pytest

from velodrome.run.measuring.kernel import connections, foreign

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="sockets of other processes are read from /proc"
)

STRANGER = """
import socket, sys
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
server.bind(("127.0.0.1", int(sys.argv[1]))); server.listen(5)
print("listening", flush=True); sys.stdin.readline()
"""


def shared_port() -> socket.socket:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    server.bind(("127.0.0.1", 0))
    server.listen(5)
    return server


def test_a_second_server_that_bound_the_port_in_silence_is_found() -> None:
    with shared_port() as server:
        port = server.getsockname()[1]
        assert foreign(port, [os.getpid()]) == ()
        with subprocess.Popen(
            [sys.executable, "-c", STRANGER, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as stranger:
            assert stranger.stdout is not None
            assert stranger.stdout.readline() == b"listening\n"
            (found,) = foreign(port, [os.getpid()])
            assert found.pid == stranger.pid
            assert found.address == "127.0.0.1"
            assert found.name.startswith("python")
            assert foreign(port, [os.getpid(), stranger.pid]) == ()
            stranger.communicate()


def test_connections_are_counted_by_who_accepted_them() -> None:
    with shared_port() as server:
        clients = [socket.create_connection(server.getsockname()) for _ in range(3)]
        accepted = [server.accept()[0] for _ in range(2)]  # the third still waits and is nobody's
        assert connections(server.getsockname()[1], [os.getpid()]) == {os.getpid(): 2}
        for sock in clients + accepted:
            sock.close()


def test_a_process_that_is_gone_holds_nothing() -> None:
    with shared_port() as server:
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        assert connections(server.getsockname()[1], [gone.pid]) == {gone.pid: 0}
