"""`velodrome agent` and `velodrome cluster`: many machines that carry one load (docs/cluster.md).

Dask is imported when these commands run, and by no other command.
"""

import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from velodrome.cli import _server_options as serving
from velodrome.model.errors import UsageError

Keys = Annotated[
    str | None, typer.Option(metavar="FOLDER", help="The cluster's certificates, of velodrome cluster keys.")
]
PlainTcp = Annotated[
    bool,
    typer.Option(
        "--plain-tcp",
        help="Without TLS beyond this machine: whoever reaches the port can run any code as this user.",
    ),
]
Coordinator = Annotated[
    str, typer.Option(metavar="ADDRESS", help="tls://host:8786; without a scheme TLS, but on loopback.")
]
Roles = Annotated[
    str, typer.Option(metavar="ROLE,…", help="What an agent is for: load, server, third-party.")
]
AllowTarget = Annotated[
    list[str] | None,
    typer.Option(metavar="HOST", help="What an agent may load beside its own machine; repeatable."),
]
User = Annotated[
    str,
    typer.Option(help="Whom engines run as where an agent is root (who called sudo, else nobody's user id)."),
]
USUAL = "127.0.0.1:8786"


def agent(
    coordinator: Coordinator,
    name: Annotated[str, typer.Option(help="Unique in the cluster (host and process).")] = "",
    roles: Roles = "load",
    cpus: Annotated[str, typer.Option(help="CPUs of its engine: 2-7, or 0,2 (all).")] = "",
    allow_target: AllowTarget = None,
    host: Annotated[
        str | None, typer.Option(help="Its own address, that others reach it by (found by itself).")
    ] = None,
    port: Annotated[int, typer.Option(help="To listen on; 0 takes a free one.")] = 0,
    user: User = "",
    keys: Keys = None,
    plain_tcp: PlainTcp = False,
) -> None:
    """Carry loads on this machine for commands on others, until interrupted or the coordinator goes.

    Who holds a certificate of the cluster can run code here. Started as root, that code has no root, and a process of
    root decides what engines may load; else what it may load protects from mistakes.
    """
    from velodrome.run.cluster import address as addresses  # noqa: PLC0415
    from velodrome.run.cluster.holding import Policy  # noqa: PLC0415

    addresses.refuse_plain(coordinator, plain=plain_tcp)
    policy = Policy(name, _roles(roles), _numbers(cpus), tuple(allow_target or ()))
    policy.check()
    how = {"address": coordinator, "host": host, "port": port}
    folder = Path(keys) if keys else None
    (_root_agent if os.geteuid() == 0 else _plain_agent)(how, policy, folder, user)


def _root_agent(how: dict[str, Any], policy: Any, folder: Path | None, user: str) -> None:
    """Hold the policy of an agent here, and start a worker of Dask without root."""
    from velodrome.run.cluster import address, holding, keys  # noqa: PLC0415

    if address.Address.read(how["address"]).scheme == "tls":
        how["key_files"] = keys.contents(keys.find_keys(folder))
    holding.hold(how, policy, user, lambda line: print(line, flush=True))


def _plain_agent(how: dict[str, Any], policy: Any, folder: Path | None, user: str) -> None:
    """Be an agent that decides for itself."""
    import asyncio  # noqa: PLC0415 - help does without

    from velodrome.run import account  # noqa: PLC0415
    from velodrome.run.cluster import agent, talking  # noqa: PLC0415 - brings Dask

    account.account_for(user)  # raises: it is nobody else
    address = talking.Address.read(how["address"])
    asyncio.run(
        agent.serve(
            str(address),
            policy,
            talking.security(address.scheme, folder),
            host=how["host"],
            port=how["port"],
            on_ready=lambda agent: print(f"{agent.name} {agent.address}", flush=True),
        )
    )


def _roles(text: str) -> tuple[str, ...]:
    """Read `load,server`. Raises UsageError for what is no role, and for none."""
    from velodrome.run.cluster.holding import ROLES  # noqa: PLC0415

    found = tuple(dict.fromkeys(role.strip() for role in text.split(",") if role.strip()))
    if strange := [role for role in found if role not in ROLES]:
        raise UsageError(f"--roles: there is no role '{strange[0]}'; there are: {', '.join(ROLES)}")
    if not found:
        raise UsageError(f"--roles: name one at least of: {', '.join(ROLES)}")
    return found


def _numbers(text: str) -> tuple[int, ...]:
    """Read `2-7` or `0,2`. Raises UsageError for what is no such list."""
    found: list[int] = []
    try:
        for piece in filter(None, text.split(",")):
            first, _, last = piece.partition("-")
            found += range(int(first), int(last or first) + 1)
    except ValueError as error:
        raise UsageError(f"--cpus: '{text}' is no list of CPUs; write 2-7, or 0,2") from error
    if text and not found:
        raise UsageError(f"--cpus: '{text}' is no list of CPUs; write 2-7, or 0,2")
    return tuple(sorted(set(found)))


def start(
    local: Annotated[int, typer.Option("--local", min=0, help="So many agents of this machine.")] = 0,
    hosts: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C", help="By SSH: the coordinator on the first of these, an agent on each."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on (127.0.0.1; with --hosts, that of the first).")
    ] = "",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8786,
    keys: Keys = None,
    plain_tcp: PlainTcp = False,
    tls: Annotated[
        bool, typer.Option("--tls", help="TLS on loopback, too: where others use this machine.")
    ] = False,
    roles: Roles = "load",
    cpus: Annotated[str, typer.Option(help="CPUs of the engine on each of --hosts: 2-7, or 0,2 (all).")] = "",
    allow_target: AllowTarget = None,
    user: User = "",
    ssh_user: Annotated[str, typer.Option(help="Who logs in, where a host does not say: user@host.")] = "",
    ssh_key: Annotated[str, typer.Option(metavar="FILE", help="Private key (what ssh would take).")] = "",
    ssh_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="As of ssh -o: Port, ProxyJump, UserKnownHostsFile; repeatable."
        ),
    ] = None,
    remote_python: Annotated[
        str,
        typer.Option(
            metavar="COMMAND", help="Interpreter there that has velodrome (the path of the one here)."
        ),
    ] = "",
) -> None:
    """Start a coordinator and agents, print its address, and end all of them on Ctrl-C.

    With --hosts by SSH: keys and known hosts count as for ssh; certificates are made where there are none, and sent.
    """
    from velodrome.run.cluster import coordinator as coordinators  # noqa: PLC0415 - brings Dask
    from velodrome.run.cluster import talking  # noqa: PLC0415
    from velodrome.run.cluster.address import count_local  # noqa: PLC0415

    if local:
        count_local(str(local))
    if hosts is not None and not hosts.strip(", "):
        raise UsageError("--hosts names no host; write --hosts a,b,c, or leave it out for this machine")
    if tls and plain_tcp:
        raise UsageError("--tls and --plain-tcp exclude each other")
    if (ssh_user or ssh_key or ssh_option or remote_python or cpus) and not hosts:
        raise UsageError("--ssh-…, --remote-python and --cpus are of --hosts; name these, or leave it out")
    if hosts and local:
        raise UsageError(
            "--hosts and --local exclude each other: name this machine in --hosts, or start an agent on it"
        )
    folder, wanted_roles = Path(keys) if keys else None, _roles(roles)
    if hosts:
        from velodrome.run.cluster import holding, ssh  # noqa: PLC0415 - brings asyncssh

        policy = holding.Policy("", wanted_roles, _numbers(cpus), tuple(allow_target or ()))
        reach = ssh.Reach(ssh_user, ssh_key, tuple(ssh_option or ()), remote_python)
        scheme = "tcp" if plain_tcp else "tls"
        wanted = ssh.Wanted(policy, host, port, scheme, folder, user)
        _start_by_ssh([ssh.Host.read(host.strip()) for host in hosts.split(",")], reach, wanted)
        return
    host = host or "127.0.0.1"
    scheme = "tls" if tls or not (plain_tcp or talking.is_loopback(host)) else "tcp"
    stopped = threading.Event()
    permitted = {"roles": wanted_roles, "allow_target": allow_target or []}
    with coordinators.local(host, port, local, scheme=scheme, folder=folder, policy=permitted) as found:
        # Not before: until all are there a signal ends the start, and what was started ends with it.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda *_: stopped.set())
        print(found.address, flush=True)
        while not stopped.wait(0.2):  # a wait without an end is not interrupted by a signal right before it
            for sentence in found.look():
                print(sentence, file=sys.stderr, flush=True)


def _start_by_ssh(hosts: Any, reach: Any, wanted: Any) -> None:
    """Hold a coordinator and agents on other hosts until interrupted."""
    import asyncio  # noqa: PLC0415 - help does without

    from velodrome.run.cluster import keys, ssh  # noqa: PLC0415

    if wanted.scheme == "tls" and not any(
        keys.Keys(folder := wanted.keys or keys.usual_folder()).folder.glob("*")
    ):
        keys.make(folder)
        print(f"made certificates in {folder}", file=sys.stderr)

    async def held() -> None:
        serving = asyncio.ensure_future(
            ssh.serve(
                hosts,
                reach,
                wanted,
                on_ready=lambda address: print(address, flush=True),
                on_lost=lambda sentence: print(sentence, file=sys.stderr, flush=True),
            )
        )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
        with suppress(asyncio.CancelledError):
            await serving

    asyncio.run(held())


def make_keys(
    out: Annotated[str | None, typer.Option(metavar="FOLDER", help="A new folder for them.")] = None,
) -> None:
    """Make the certificates of a cluster: copy ca.pem, host.pem and host.key to every host of it."""
    from velodrome.run.cluster import keys  # noqa: PLC0415

    made = keys.make(Path(out) if out else None)
    print(f"{made.folder}: copy ca.pem, host.pem and host.key to every host; keep ca.key to yourself.")
    print("Whoever holds host.key can run code on the agents of this cluster.", file=sys.stderr)


def show(coordinator: str, keys: str | None, bandwidth: bool, as_json: bool) -> None:
    """List the agents of a coordinator: roles, CPUs, versions, permissions, clocks, and how far they are apart."""
    from velodrome.report import listing  # noqa: PLC0415
    from velodrome.usecases import cluster_load  # noqa: PLC0415 - brings Dask

    found = cluster_load.overview(coordinator, Path(keys) if keys else None, transfers=bandwidth)
    print(listing.agents_document(found) if as_json else "\n".join(listing.agents_lines(found)))


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command("agent")(agent)
    group = typer.Typer(no_args_is_help=False, rich_markup_mode=None)

    @group.callback(invoke_without_command=True)
    def default(
        context: typer.Context,
        coordinator: Coordinator = USUAL,
        keys: Keys = None,
        bandwidth: Annotated[
            bool, typer.Option("--bandwidth", help="Measure what goes through between agents (seconds each).")
        ] = False,
        as_json: serving.AsJson = False,
    ) -> None:
        if context.invoked_subcommand is None:
            show(coordinator, keys, bandwidth, as_json)

    group.command("start")(start)
    group.command("keys")(make_keys)
    app.add_typer(group, name="cluster", help=show.__doc__)
