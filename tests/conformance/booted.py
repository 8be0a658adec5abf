"""A stack under its real command line, in its own environment, in sight of all that it could leave behind."""

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from velodrome.guest.recipe import RECIPE_VARIABLE, UPSTREAM_VARIABLE, Recipe
from velodrome.guest.stack import Launch, Stack

BOOT_S = 30.0
STOP_S = 10.0
MARK = "VELODROME_CONFORMANCE"


@dataclass
class Booted:
    """A running server."""

    port: int
    folder: Path
    """Parent of its home, temporary and working folder."""
    process: subprocess.Popen[bytes]
    mark: str
    stop_signal: int

    def processes(self) -> list[int]:
        """Return every living process of its tree: those that carry its mark in their environment."""
        found = []
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and self.mark.encode() in Path("/proc", name, "environ").read_bytes():
                    found.append(int(name))
        return found

    def output(self) -> str:
        """Return what it has written to its standard output and error."""
        return (self.folder / "output").read_text(errors="replace")

    def left_files(self) -> list[str]:
        """Return what it has put into the folders it was given."""
        return [str(path) for name in ("home", "tmp", "cwd") for path in (self.folder / name).rglob("*")]

    def stop(self) -> float:
        """Send the stop signal to the process that was started; return the seconds it took to end."""
        began = time.monotonic()
        self.process.send_signal(self.stop_signal)
        self.process.wait(STOP_S)
        return time.monotonic() - began

    def wait_until_listening(self) -> None:
        """Return when its port takes connections; fail when it has died or time is up."""
        until = time.monotonic() + BOOT_S
        while time.monotonic() < until:
            assert self.process.poll() is None, f"died with {self.process.returncode}:\n{self.output()}"
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.01)
        raise AssertionError(f"not listening after {BOOT_S:g} s:\n{self.output()}")


@contextlib.contextmanager
def booted(
    stack: Stack, recipe: Recipe, python: Path, tree: Path, upstream: str, folder: Path, **knobs: int | str
) -> Iterator[Booted]:
    """Start a stack with a recipe; kill what is left of its tree in the end."""
    port = _free_port()
    app = f"velodrome.guest.interfaces.{stack.interface}:app"
    order = stack.command(Launch("127.0.0.1", port, app, stack.settings(knobs)))
    for name in ("home", "tmp", "cwd"):
        (folder / name).mkdir(parents=True)
    mark = f"{MARK}={secrets.token_hex(8)}"
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": str(tree),
        "PYTHONNOUSERSITE": "1",
        "PYTHONUNBUFFERED": "1",
        RECIPE_VARIABLE: recipe.to_json(),
        UPSTREAM_VARIABLE: upstream,
        **dict([mark.split("=")]),
        **order.env,
    }
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [python, *order.argv],
            cwd=folder / "cwd",
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    server = Booted(port, folder, process, mark, order.stop_signal)
    try:
        yield server
    finally:
        for pid in {process.pid, *server.processes()}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
