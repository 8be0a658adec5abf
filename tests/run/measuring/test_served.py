import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from velodrome.run.measuring.kernel import who_serves

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="threads of other processes are read from /proc"
)

BUSY = """
import socket, sys, threading
server = socket.create_server(("127.0.0.1", 0))
def work():
    while True: pass
threading.Thread(target=work, daemon=True).start()
print(server.getsockname()[1], flush=True)
sys.stdin.readline()
"""


@contextmanager
def busy_server() -> Iterator[tuple[int, int]]:
    """A server of two threads, one of which is busy: its port, and its process."""
    with subprocess.Popen(
        [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline()), process.pid
        finally:
            process.kill()


def test_a_busy_thread_of_a_server_shows() -> None:
    with busy_server() as (port, pid):
        serving = who_serves(f"http://localhost:{port}/")
        assert serving
        assert serving.pids == (pid,)
        serving.begin()
        before = time.monotonic()
        # It waits for a CPU or has one: together they grow with the clock.
        while time.monotonic() < before + 0.3:
            time.sleep(0.05)
        serving.end()
        span_s = time.monotonic() - before
        use = serving.use()
    assert use
    assert (use.processes, use.threads) == (1, 2)
    assert use.busiest_cpu_s + use.busiest_queued_s == pytest.approx(span_s, rel=0.3)
    assert use.cpus >= 1


def test_a_server_that_was_not_looked_at_twice_tells_nothing() -> None:
    with busy_server() as (port, _):
        serving = who_serves(f"http://127.0.0.1:{port}/")
        assert serving
        assert serving.use() is None
        serving.begin()
    serving.end()
    assert serving.use() is None, "it is gone"


@pytest.mark.parametrize(
    "url", ["http://192.0.2.1:80/", "http://127.0.0.1:1/", "http://127.0.0.1:99999/", "unix:/tmp/x"]
)
def test_what_is_elsewhere_or_nobody_is_not_looked_at(url: str) -> None:
    assert who_serves(url) is None
