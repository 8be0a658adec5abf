"""A coordinator and agents on other hosts, started over SSH: one connection to each host, whose end ends all there.

    await serve([Host.read("10.0.0.1"), Host.read("bench@10.0.0.2:2222")], Reach(), Wanted(), on_ready=print, …)

The coordinator is on the first host, an agent on each: connections go from here to the hosts and between these, and no
host has to reach this machine. What is started reads what it is to do, and the cluster's keys, from its standard input,
so that neither is on a command line. That input is also its lifeline: it ends with the connection, and where the
network is cut, by the silence.

Not by Dask's SSHCluster: what that starts does not end when the starter is killed, imports from the folder it is
started in, and has no way for files. asyncssh, which it uses, is used here directly.
"""

import asyncio
import json
import os
import shlex
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from velodrome.model import secrets
from velodrome.model.errors import ClusterMissingError, CoordinatorError, SshError, UsageError
from velodrome.run.cluster import coordinator, keys, talking
from velodrome.run.cluster.holding import Policy
from velodrome.run.supervision import python, scratch

try:
    import asyncssh
    from asyncssh.config import SSHClientConfig
except ImportError as error:
    raise ClusterMissingError(str(error)) from error

CONNECT_S = 15.0
"""For a host to be reached, and to let us in."""
END_S = 4.0
"""For what was started to end by itself."""
ALIVE_S = 5
"""Between two questions whether a connection is alive; three without an answer, and it is lost."""


@dataclass(frozen=True)
class Host:
    """Where to start something, as its user names it."""

    name: str
    user: str = ""
    port: int = 0
    """0: that of `~/.ssh/config`, or 22."""

    @classmethod
    def read(cls, text: str) -> "Host":
        """Read `host`, `user@host` or `user@host:port`; IPv6 in brackets. Raises UsageError."""
        try:
            parts = urlsplit(f"//{text}")
            name, port = parts.hostname or "", parts.port or 0
        except ValueError:
            name, port = "", 0
        if not name or parts.path or name.startswith("-"):
            raise UsageError(f"--hosts: '{text}' is no host; write host, user@host or user@host:port")
        return cls(name, parts.username or "", port)


@dataclass(frozen=True)
class Reach:
    """How hosts are reached. `~/.ssh/config`, an agent of keys and known hosts count as they do for ssh."""

    user: str = ""
    key: str = ""
    """File of a private key, without a passphrase; empty: what ssh itself would try."""
    options: tuple[str, ...] = ()
    """`NAME=VALUE` of ssh_config(5), before those of files."""
    python: str = ""
    """A command there: an interpreter that has velodrome, perhaps with words before it (`sudo -n …`). Empty: the path
    of the one here."""

    def __post_init__(self) -> None:
        """Raise UsageError for what is no option that counts here."""
        known: Mapping[str, object] = SSHClientConfig._handlers  # what is not there, it leaves out
        for option in self.options:
            name, is_one, _ = option.partition("=")
            if not is_one or name.strip().lower() not in known or "\n" in option:
                raise UsageError(
                    f"--ssh-option: '{option}' is no NAME=VALUE of an option of ssh that counts here; among these are "
                    "Port, ProxyJump, IdentityFile, UserKnownHostsFile"
                )


@dataclass(frozen=True)
class Wanted:
    """What is started."""

    policy: Policy = field(default_factory=Policy)
    """Of each agent, but for the name, which is that of its host."""
    host: str = ""
    """Address of the coordinator; empty: the one by which its host is reached."""
    port: int = talking.PORT
    scheme: str = "tls"
    keys: Path | None = None
    account: str = ""
    """Whom engines run as where the agent is root."""


async def serve(
    hosts: Sequence[Host],
    reach: Reach,
    wanted: Wanted,
    *,
    on_ready: Callable[[str], None],
    on_lost: Callable[[str], None],
) -> None:
    """Start all, call `on_ready` with the coordinator's address when all agents are there; when cancelled, end all.

    `on_lost` hears of each agent that ended before. Raises SshError, ClusterKeysError, CoordinatorError; also when the
    coordinator ends before, or no agent is left.
    """
    files = {} if wanted.scheme == "tcp" else keys.contents(keys.find_keys(wanted.keys))
    remotes = [_Remote(host, reach) for host in hosts]
    began: list[_Remote] = []
    beating = asyncio.ensure_future(_beating(began))
    try:
        await _all(remote.connect() for remote in remotes)
        first = _Remote(hosts[0], reach, remotes[0].connection)
        began.append(first)
        at = wanted.host or first.address
        how = {"host": at, "port": wanted.port, "scheme": wanted.scheme, "key_files": files}
        address = await first.begin("scheduler", how)
        for remote, name in zip(remotes, _names(hosts), strict=True):
            remote.what = {
                "address": address,
                "key_files": files,
                "policy": asdict(replace(wanted.policy, name=name)),
                "account": wanted.account,
            }
        began += remotes
        await _all(remote.begin("agent", remote.what) for remote in remotes)
        on_ready(address)
        await _keep_alive(first, remotes, address, on_lost)
    finally:
        await asyncio.gather(*(remote.end() for remote in began))
        await asyncio.gather(*(remote.hang_up() for remote in remotes))
        beating.cancel()


async def _beating(began: Sequence["_Remote"]) -> None:
    """Say to all that has begun that we are alive, also while others start."""
    while True:
        for remote in began:
            remote.beat()
        await asyncio.sleep(coordinator.BEAT_S)


async def _all(works: Any) -> None:
    """Wait for all, also where some fail; then raise the first failure."""
    for found in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(found, BaseException):
            raise found


async def _keep_alive(
    first: "_Remote",
    remotes: Sequence["_Remote"],
    address: str,
    on_lost: Callable[[str], None],
) -> None:
    """Keep all alive. Raises CoordinatorError, SshError."""
    left = list(remotes)
    while True:
        if first.is_over():
            raise CoordinatorError(address, f"it ended on {first.host.name} ({first.ending()})")
        for agent in [agent for agent in left if agent.is_over()]:
            left.remove(agent)
            on_lost(f"the agent on {agent.host.name} has ended ({agent.ending()})")
            if not left:
                raise SshError(agent.host.name, "no agent is left", "Look at the sentences above")
        await asyncio.sleep(coordinator.BEAT_S)


def _names(hosts: Sequence[Host]) -> list[str]:
    """Return a name for each agent: its host, and a number where one host has several."""
    seen: dict[str, int] = {}
    names = []
    for host in hosts:
        seen[host.name] = seen.get(host.name, 0) + 1
        names.append(host.name if seen[host.name] == 1 else f"{host.name}-{seen[host.name]}")
    return names


class _Remote:
    """A process on a host."""

    def __init__(self, host: Host, reach: Reach, connection: Any = None) -> None:
        self.host, self.reach, self.connection = host, reach, connection
        self.what: dict[str, Any] = {}
        self.process: Any = None
        self.interpreter: list[str] = []
        self.answered = False
        self.last_lines: deque[str] = deque(maxlen=python.LAST_LINES)
        self.reading: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """Return where it is reached."""
        return str(self.connection.get_extra_info("peername")[0])

    async def connect(self) -> None:
        """Reach the host. Raises SshError."""
        name = self.host.name
        try:
            options = asyncssh.SSHClientConnectionOptions(**self._options())
            if options.known_hosts is None:
                raise SshError(name, "known hosts are switched off", "Name a file with UserKnownHostsFile")
            self.connection = await asyncio.wait_for(asyncssh.connect(name, options=options), CONNECT_S)
        except asyncssh.HostKeyNotVerifiable as error:
            cure = (
                f"Connect once with ssh {name} and compare the key it shows with that of the host; one that has "
                f"changed is removed with: ssh-keygen -R {name}"
            )
            raise SshError(name, f"its key is not among the known hosts ({error.reason})", cure) from error
        except asyncssh.PermissionDenied as error:
            cure = "Name the user with --ssh-user and the key with --ssh-key, or add it to ssh-agent"
            raise SshError(name, f"it lets nobody in with these keys ({error.reason})", cure) from error
        except TimeoutError as error:
            cure = f"See that ssh {name} works"
            raise SshError(name, f"no answer within {CONNECT_S:g} s", cure) from error
        except (OSError, asyncssh.Error, asyncssh.KeyImportError, asyncssh.ConfigParseError) as error:
            cure = f"See that ssh {name} works"
            raise SshError(name, talking.in_words(error), cure) from error

    def _options(self) -> dict[str, Any]:
        folder = Path.home() / ".ssh"
        ours = scratch.make_folder("ssh")
        before, after = ours / "before", ours / "after"
        before.write_text("".join(f"{option}\n" for option in self.reach.options))
        known = {
            "UserKnownHostsFile": [folder / "known_hosts", folder / "known_hosts2"],
            "GlobalKnownHostsFile": [Path("/etc/ssh/ssh_known_hosts"), Path("/etc/ssh/ssh_known_hosts2")],
        }
        lines = [
            f"{option} {' '.join(shlex.quote(str(file)) for file in files)}\n"
            for option, every in known.items()
            if (files := [file for file in every if os.access(file, os.R_OK)])
        ]
        after.write_text("".join(lines))
        usual = [folder / "config"] if os.access(folder / "config", os.R_OK) else []
        options: dict[str, Any] = {
            "config": [before, *usual, after],
            "host": self.host.name,
            "keepalive_interval": ALIVE_S,
            "keepalive_count_max": 3,
        }
        if user := self.host.user or self.reach.user:
            options["username"] = user
        if self.host.port:
            options["port"] = self.host.port
        if self.reach.key:
            options["client_keys"] = [self.reach.key]
        return options

    async def begin(self, what: str, how: Mapping[str, Any]) -> str:
        """Start something, and return the line it says. Raises SshError."""
        ours = python.own(coordinator.MODULE, "--cpus", "", "--user", "", "-").argv
        self.interpreter = shlex.split(self.reach.python) or list(ours[:1])
        command = shlex.join([*self.interpreter, *ours[1:]])
        try:
            self.process = await self.connection.create_process(f"exec {command}", encoding=None)
        except asyncssh.Error as error:
            raise SshError(self.host.name, error.reason, "See that it may run commands") from error
        self.reading = asyncio.ensure_future(self._read())
        self.process.stdin.write(json.dumps([what, {**how, "beats": True}]).encode() + b"\n")
        try:
            reply: bytes = await asyncio.wait_for(self.process.stdout.readline(), coordinator.START_S)
        except (TimeoutError, asyncssh.Error) as error:
            raise SshError(self.host.name, f"its {what} says nothing", self._cure()) from error
        line = reply.decode(errors="replace").strip()
        if line.startswith("error "):
            raise SshError(self.host.name, line.removeprefix("error "), "Nothing was left running")
        if not line:
            await self._over()
            raise SshError(self.host.name, f"its {what} did not start ({self.ending()})", self._cure())
        self.answered = True
        return line

    def _cure(self) -> str:
        return (
            "Install the same velodrome[cluster] there, and name its interpreter with --remote-python (now "
            f"{shlex.join(self.interpreter)})"
        )

    async def _read(self) -> None:
        with suppress(asyncssh.Error, UnicodeError):
            async for line in self.process.stderr:
                self.last_lines.append(secrets.mask(line.decode(errors="replace").strip()))

    def beat(self) -> None:
        """Say that we are alive, once it has answered."""
        if self.answered:
            with suppress(OSError, asyncssh.Error):
                self.process.stdin.write(b"\n")

    def is_over(self) -> bool:
        """Whether it has ended, or the connection to it."""
        return bool(self.process.exit_status is not None or self.process.is_closing())

    def ending(self) -> str:
        """Return how it ended."""
        status = self.process.exit_status
        how = "the connection was lost" if status is None else f"exit {status}"
        return f"{how}: {self.last_lines[-1]}" if self.last_lines else how

    async def end(self) -> None:
        """Have it end, and wait until it has."""
        if self.process is not None:
            with suppress(OSError, asyncssh.Error):
                self.process.stdin.write_eof()
            await self._over()

    async def _over(self) -> None:
        waits = [asyncio.ensure_future(self.process.wait_closed())]
        if self.reading is not None:
            waits.append(self.reading)
        await asyncio.wait(waits, timeout=END_S)

    async def hang_up(self) -> None:
        """End the connection, and with it what is left there."""
        if self.connection is not None:
            self.connection.close()
            with suppress(TimeoutError, OSError, asyncssh.Error):
                await asyncio.wait_for(self.connection.wait_closed(), 1.0)
