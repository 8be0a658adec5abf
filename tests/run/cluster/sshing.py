"""An SSH server of the tests' own: its keys, its port, and nobody else's."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

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
def hosts(many: int) -> Iterator[list[tuple[str, str]]]:
    """Make network namespaces that are joined by a bridge; yield the name and the address of each."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and ip: sudo, and apt-get install iproute2")
    mark = f"{os.getpid() % 100000}"
    subnet = f"10.77.{os.getpid() % 250}"
    bridge = f"vb{mark}"
    names = [f"velodrome-test-{mark}-{number}" for number in range(many)]
    try:
        ip("link", "add", bridge, "type", "bridge")
        ip("addr", "add", f"{subnet}.1/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        for number, name in enumerate(names):
            end = f"v{mark}-{number}"
            ip("netns", "add", name)
            ip("link", "add", end, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", end, "master", bridge, "up")
            ip("-n", name, "addr", "add", f"{subnet}.{number + 11}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield [(name, f"{subnet}.{number + 11}") for number, name in enumerate(names)]
    finally:
        for name in names:
            ip("netns", "del", name, check=False)
        ip("link", "del", bridge, check=False)


def ip(*words: str, check: bool = True) -> None:
    """Run ip(8)."""
    subprocess.run(["ip", *words], check=check, capture_output=True)


@contextmanager
def sshd(folder: Path, address: str = "127.0.0.1", within: Sequence[str] = ()) -> Iterator[Sshd]:
    """Serve SSH on an address; `within`: words before the command, such as those that enter a namespace."""
    folder.mkdir(exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    host, _ = key(folder, "host"), key(folder, "id")
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
    (folder / "known").write_text(f"[{address}]:{port} {host}\n")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # where sshd separates its privileges
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*within, SSHD, "-D", "-e", "-f", str(folder / "config")], stderr=log)
    try:
        deadline = time.monotonic() + 20
        while "listening on" not in (folder / "log").read_text():
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield Sshd(folder, port)
    finally:
        server.terminate()
        server.wait()
