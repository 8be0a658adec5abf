"""Network namespaces as hosts: each has an address of its own, and one cable to the router that joins them all.

with network(6) as hosts, hosts.target(5) as target, hosts.cluster(keys, (1, 2, 3, 4), allow) as cluster: ...

network, target, cluster = fixtures(6, server=5, agents=(1, 2, 3, 4))       # of a module of tests

They share kernel, CPUs and clock, which is why nothing here shows throughput. A cable can be pulled.
"""

import json
import os
import signal
import struct
import subprocess
import sys
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from fcntl import ioctl
from pathlib import Path
from socket import socket
from typing import Any

import psutil
import pytest
from tests.run.cluster.posing import list_agents
from tests.waiting import wait_until

from velodrome.model.errors import AgentLostError, LinkRefusedError
from velodrome.model.load import MTU
from velodrome.run.cluster import keys as certificates
from velodrome.run.engine import LoadSpec, schedule
from velodrome.run.link import (
    DEVICE,
    Namespace,
    apply_settings,
    enter,
    forward,
    make,
    settings,
    without_ipv6,
)
from velodrome.run.machine.netlink import Netlink

SIOCSIFFLAGS, IFF_UP, IFF_NOARP = 0x8914, 0x1, 0x80
PATIENCE_S = 30.0


def possible() -> str:
    """Return why this machine cannot have such hosts; empty: it can."""
    try:
        make().close()
    except LinkRefusedError as error:
        return f"network namespaces need root: run the tests as root on Linux ({error})"
    return ""


needed = pytest.mark.skipif(bool(possible()), reason=possible())


@dataclass
class Host:
    """One of them."""

    number: int
    address: str
    namespace: Namespace
    hub: Namespace

    def start(self, *command: str, env: Mapping[str, str] | None = None) -> "subprocess.Popen[str]":
        """Start a program on it."""
        with enter(self.namespace):
            return subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, MARK: OWN, **(env or {})},
            )

    def pull(self) -> None:
        """Pull its cable, at the router."""
        with enter(self.hub), socket() as any_socket:
            ioctl(any_socket, SIOCSIFFLAGS, struct.pack("=16sh14x", f"to-{self.number}".encode(), IFF_NOARP))

    def plug(self) -> None:
        """Plug it in."""
        with enter(self.hub), Netlink() as net:
            net.bring_up(f"to-{self.number}", MTU)
            net.add_route(f"to-{self.number}", self.address)


@dataclass
class Network:
    """All of them."""

    hosts: Sequence[Host]

    @contextmanager
    def target(self, host: int) -> Iterator["Target"]:
        """Have a server on one of them that notes which request came when."""
        process = self.hosts[host].start(
            sys.executable, str(Path(__file__).with_name("noting.py")), self.hosts[host].address
        )
        try:
            assert process.stdout is not None
            yield Target(f"http://{self.hosts[host].address}:{int(process.stdout.readline())}", process)
        finally:
            ended(process)

    @contextmanager
    def cluster(self, keys: Path, agents: Sequence[int], allow: str) -> Iterator["Cluster"]:
        """Have a coordinator on the first host, and an agent on each of others, in the order of their names."""
        found = Cluster(self, keys, agents, allow)
        try:
            found.mend()
            yield found
        finally:
            for process in (*found.agents.values(), found.coordinator):
                ended(process)


VELODROME = (sys.executable, "-m", "velodrome")


@dataclass
class Cluster:
    """A coordinator and its agents."""

    network: Network
    keys: Path
    members: Sequence[int]
    """Hosts that have an agent."""
    allow: str
    """What agents may load."""
    address: str = ""
    coordinator: "subprocess.Popen[str]" = field(init=False)
    agents: dict[str, "subprocess.Popen[str]"] = field(default_factory=dict)

    def mend(self) -> None:
        """Start what has ended, or has never begun."""
        if not self.address or self.scheduler is None:
            for process in (*self.agents.values(), *([self.coordinator] if self.address else [])):
                ended(process)
            self.agents.clear()
            first = self.network.hosts[0]
            how = ("--host", first.address, "--port", "0", "--keys", str(self.keys))
            self.coordinator = first.start(*VELODROME, "cluster", "start", *how)
            self.address = first_line(self.coordinator)
        new = []
        for number in self.members:
            old = self.agents.get(f"host-{number}")
            if old is None or old.poll() is not None:
                new.append(self.agent(number))
        for process in new:
            first_line(process)
        wait_until(lambda: self.names() == sorted(self.agents), PATIENCE_S)

    @property
    def scheduler(self) -> psutil.Process | None:
        """The process that is the coordinator; None: it has ended."""
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self.coordinator.pid).children():
                if "scheduler" in child.cmdline() and child.status() != psutil.STATUS_ZOMBIE:
                    return child
        return None

    def names(self) -> list[str]:
        """Return which agents are there; none while one that is gone is known still."""
        with enter(self.network.hosts[0].namespace), suppress(AgentLostError):
            return [row["name"] for row in list_agents(self.address, self.keys)]
        return []

    def agent(
        self, number: int, *, code: str = "", env: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[str]":
        """Start an agent on a host; `code` is run in its place."""
        host = self.network.hosts[number]
        name = f"host-{number}"
        command = (
            (sys.executable, "-c", code, self.address, name, host.address, str(self.keys), self.allow)
            if code
            else (
                *VELODROME,
                *("agent", "--coordinator", self.address, "--keys", str(self.keys), "--name", name),
                *("--host", host.address, "--allow-target", self.allow),
            )
        )
        self.agents[name] = host.start(*command, env=env)
        return self.agents[name]

    def command(self, url: str, *options: str) -> "subprocess.Popen[str]":
        """Start `velodrome load --json` beside the coordinator."""
        return self.network.hosts[0].start(
            *VELODROME,
            *("load", url, "--agents", self.address, "--keys", str(self.keys)),
            *("--allow-target", self.allow, "--json", *options),
        )

    def strange(self, *known: "subprocess.Popen[str]") -> list[str]:
        """Return the command lines of processes that were started here and should not run, or not any more."""
        fine = {os.getpid(), *(process.pid for process in known)}
        fine |= {process.pid for process in (*self.agents.values(), self.coordinator)}
        if (scheduler := self.scheduler) is not None:
            fine.add(scheduler.pid)
        return [" ".join(process.cmdline()) for process in marked() if process.pid not in fine]


@dataclass
class Target:
    """A server that notes which request came when."""

    url: str
    process: "subprocess.Popen[str]"
    load: int = 0
    """The last that was begun under a URL of its own."""

    def own_url(self) -> str:
        """Return the URL of a load by whose requests it is known among those of others, see `noting.py`."""
        self.load += 1
        return f"{self.url}/{{{{n}}}}?{self.load}"

    def own(self, folder: Path) -> tuple[list[int], list[int]]:
        """Return as `taken` what came of the last load with a URL of its own, and forget the rest as well."""
        every = zip(*self.taken(folder), strict=True)
        found = [(number & 0xFFFFFFFF, at) for number, at in every if number >> 32 == self.load]
        return [number for number, _ in found], [at for _, at in found]

    @property
    def many(self) -> int:
        """How many requests came so far."""
        return int(self._exchange("many"))

    def taken(self, folder: Path) -> tuple[list[int], list[int]]:
        """Return numbers and moments (nanoseconds) of the requests that came, and forget them."""
        file = folder / "came"
        self._exchange(str(file))
        noted = array("Q", file.read_bytes())
        return list(noted[::2]), list(noted[1::2])

    def _exchange(self, line: str) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()


def deviations_us(spec: LoadSpec, numbers: Sequence[int], moments: Sequence[int]) -> list[float]:
    """Return how far each request came from its place in the schedule, in order of size.

    The schedule begins where half of them are early and half late.
    """
    dues = schedule(spec, max(numbers) + 1)
    off = sorted(at - dues[n] for n, at in zip(numbers, moments, strict=True))
    middle = off[len(off) // 2]
    return sorted(abs(shift - middle) / 1e3 for shift in off)


@contextmanager
def network(many: int) -> Iterator[Network]:
    """Make so many hosts, and take them away."""
    inherited = settings()
    with ExitStack() as stack:
        hub = stack.enter_context(make())
        hosts = []
        for number in range(many):
            host = Host(number, f"198.18.0.{number + 1}", stack.enter_context(make()), hub)
            with enter(host.namespace), Netlink() as net:
                net.add_pair(DEVICE, f"to-{number}", hub.descriptor)
                apply_settings(inherited)
                without_ipv6(DEVICE)
                net.bring_up("lo")
                net.bring_up(DEVICE, MTU)
                net.add_address(DEVICE, host.address, 24)
            hosts.append(host)
        with enter(hub):
            forward(f"to-{number}" for number in range(many))
        for host in hosts:
            host.plug()
        yield Network(hosts)


def fixtures(many: int, server: int, agents: Sequence[int]) -> tuple[Any, Any, Any]:
    """Return the fixtures of a module: a network, a target on one of its hosts, a coordinator with agents on others.

    The first has to be called `network` there; agents may load the target.
    """

    @pytest.fixture(scope="module")
    def hosts() -> Iterator[Network]:
        with network(many) as found:
            yield found

    @pytest.fixture(scope="module")
    def noting(network: Network) -> Iterator[Target]:
        with network.target(server) as found:
            yield found

    @pytest.fixture(scope="module")
    def cluster(network: Network, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
        made = certificates.make(tmp_path_factory.mktemp("keys")).folder
        with network.cluster(made, agents, network.hosts[server].address) as found:
            yield found

    return hosts, noting, cluster


def first_line(process: "subprocess.Popen[str]") -> str:
    """Return the first line that a process prints; with its errors where there is none."""
    assert process.stdout is not None
    assert process.stderr is not None
    line = process.stdout.readline().strip()
    assert line, process.stderr.read()
    return line


def result(process: "subprocess.Popen[str]", limit_s: float = 60.0) -> tuple[int, Mapping[str, Any], str]:
    """Return exit code, document and standard error of a `velodrome load --json` that ends."""
    out, error = process.communicate(timeout=limit_s)
    return process.returncode, json.loads(out) if out.strip() else {}, error


def ended(process: "subprocess.Popen[str]") -> None:
    """End a process if it still runs, in order, else by force."""
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(5.0)
        process.kill()
    process.communicate()


MARK, OWN = "VELODROME_TEST_HOSTS", f"{os.getpid()}-{time.time_ns()}"
"""In the environment of all that is started here, by which what was left is found."""


def marked() -> list[psutil.Process]:
    """Return the processes that were started here, whoever their parent is now."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARK) == OWN and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found
