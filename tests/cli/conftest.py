"""A server that `velodrome load` can be tried on: the simulated third party, as a user starts it."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ONE = [sys.executable, "-m", "velodrome"]


@pytest.fixture(scope="module")
def third_party() -> Iterator[str]:
    command = [*ONE, "upstream", "--latency", "5ms", "--body", "100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip() + "/"
        process.send_signal(signal.SIGINT)
        _, facts = process.communicate(timeout=10)
        assert json.loads(facts)["requests"] > 0
        assert process.returncode == 0


@pytest.fixture
def shop() -> Iterator[str]:
    """Yield the URL of a server with several pages, which remembers the requests."""
    command = [sys.executable, str(Path(__file__).with_name("shop.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        process.communicate(timeout=10)
