"""A server of the given kind on a CPU of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SERVER = Path(__file__).with_name("limit_server.py")


def cpus() -> tuple[int, int]:
    """One for the server, one for the generator."""
    first, *_, last = sorted(os.sched_getaffinity(0))
    return first, last


@contextmanager
def program(*words: str, cpu: int) -> Iterator[subprocess.Popen[str]]:
    command = ["taskset", "-c", str(cpu), sys.executable, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def server(kind: str) -> Iterator[str]:
    with program(str(SERVER), kind, cpu=cpus()[0]) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/"
