"""An SSH server of the tests' own: its keys, its port, and nobody else's."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from tests.run.cluster.hosts import Host

from velodrome.run.link import enter

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"


def needs_sshd() -> None:
    """Skip a test where there is no SSH server to start."""
    if not os.access(SSHD, os.X_OK) or shutil.which("ssh-keygen") is None:
        pytest.skip("needs an SSH server: apt-get install openssh-server")


@dataclass(frozen=True)
class Sshd:
    """A running server."""

    folder: Path
    port: int

    @property
    def options(self) -> list[str]:
        """Of `velodrome cluster start`."""
        return [
            "--ssh-key",
            str(self.folder / "id"),
            "--ssh-option",
            f"Port={self.port}",
            "--ssh-option",
            f"UserKnownHostsFile={self.folder / 'known'}",
        ]


def key(folder: Path, name: str) -> str:
    """Make a pair of keys; return the public one."""
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
    subprocess.run(made, check=True)
    return " ".join((folder / f"{name}.pub").read_text().split()[:2])


@contextmanager
def sshd(folder: Path, host: Host | None = None) -> Iterator[Sshd]:
    """Serve SSH on a host of a network, or on loopback."""
    address = host.address if host else "127.0.0.1"
    folder.mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    of_host, _ = key(folder, "host"), key(folder, "id")
    settings = {
        "Port": port,
        "ListenAddress": address,
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "id.pub",
        "StrictModes": "no",
        "PermitRootLogin": "prohibit-password",
        "PidFile": "none",
        "UsePAM": "no",
    }
    (folder / "config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    (folder / "known").write_text(f"[{address}]:{port} {of_host}\n")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd separates its privileges
    with (folder / "log").open("wb") as log, enter(host.namespace) if host else nullcontext():
        server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "config")], stderr=log)
    try:
        deadline = time.monotonic() + 20
        while "listening on" not in (folder / "log").read_text():
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield Sshd(folder, port)
    finally:
        # A session over a network that was cut outlives its daemon.
        sessions = psutil.Process(server.pid).children(recursive=True)
        server.terminate()
        server.wait()
        for session in sessions:
            with suppress(psutil.NoSuchProcess):
                session.kill()
