"""`velodrome agent` and `velodrome cluster`: many machines that carry one load (docs/cluster.md).

Dask is imported when one of these runs, and by no other command.
"""

import signal
import sys
import threading
from pathlib import Path
from typing import Annotated

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
USUAL = "127.0.0.1:8786"


def agent(
    coordinator: Coordinator,
    name: Annotated[str, typer.Option(help="Unique in the cluster (host and process).")] = "",
    roles: Annotated[str, typer.Option(help="What it does: load.")] = "load",
    cpus: Annotated[str, typer.Option(help="CPUs of its engine: 2-7, or 0,2 (all).")] = "",
    allow_target: Annotated[
        list[str] | None,
        typer.Option(help="A host that may be loaded although it is not this machine; repeatable."),
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Its own address, that others reach it by (found by itself).")
    ] = None,
    port: Annotated[int, typer.Option(help="To listen on; 0 takes a free one.")] = 0,
    keys: Keys = None,
    plain_tcp: PlainTcp = False,
) -> None:
    """Carry loads on this machine for commands on others, until interrupted or the coordinator goes.

    Who holds a certificate of the cluster can run code here. What it may load protects from mistakes.
    """
    import asyncio  # noqa: PLC0415 - help does without

    from velodrome.run.cluster import agent as agents  # noqa: PLC0415 - brings Dask
    from velodrome.run.cluster import coordinator as coordinators  # noqa: PLC0415
    from velodrome.run.cluster import talking  # noqa: PLC0415

    coordinators.refuse_plain(coordinator, plain=plain_tcp)
    address = talking.Address.read(coordinator)
    wanted = tuple(one.strip() for one in roles.split(",") if one.strip())
    if strange := [one for one in wanted if one not in agents.ROLES]:
        raise UsageError(f"--roles: there is no role '{strange[0]}'; there is: {', '.join(agents.ROLES)}")
    policy = agents.Policy(name, wanted, _cpus(cpus), tuple(allow_target or ()))
    way = talking.security(address.scheme, Path(keys) if keys else None)
    if host is None and talking.is_loopback(address.host):
        host = "127.0.0.1"
    asyncio.run(
        agents.serve(
            str(address),
            policy,
            way,
            host=host,
            port=port,
            on_ready=lambda one: print(f"{one.name} {one.address}", flush=True),
        )
    )


def _cpus(text: str) -> tuple[int, ...]:
    """Read `2-7` or `0,2`. Raises UsageError for what is no such list, or not of this process."""
    from velodrome.run.machine.facts import usable_cpus  # noqa: PLC0415

    found: list[int] = []
    try:
        for piece in filter(None, text.split(",")):
            first, _, last = piece.partition("-")
            found += range(int(first), int(last or first) + 1)
    except ValueError as error:
        raise UsageError(f"--cpus: '{text}' is no list of CPUs; write 2-7, or 0,2") from error
    if strange := sorted(set(found) - set(usable_cpus())):
        raise UsageError(f"--cpus: there is no CPU {strange[0]} here that this process may use")
    return tuple(sorted(set(found)))


def start(
    local: Annotated[int, typer.Option("--local", help="So many agents of this machine.")] = 0,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8786,
    keys: Keys = None,
    plain_tcp: PlainTcp = False,
    tls: Annotated[
        bool, typer.Option("--tls", help="TLS on loopback, too: where others use this machine.")
    ] = False,
) -> None:
    """Start a coordinator, print its address, and end it and its local agents on Ctrl-C."""
    from velodrome.run.cluster import coordinator as coordinators  # noqa: PLC0415 - brings Dask
    from velodrome.run.cluster import talking  # noqa: PLC0415

    if tls and plain_tcp:
        raise UsageError("--tls and --plain-tcp exclude each other")
    scheme = "tls" if tls or not (plain_tcp or talking.is_loopback(host)) else "tcp"
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda *_: stopped.set())
    folder = Path(keys) if keys else None
    with coordinators.coordinating(host, port, local, scheme=scheme, folder=folder) as address:
        print(address, flush=True)
        while not stopped.wait(0.2):  # a wait without an end is not interrupted by a signal right before it
            pass


def make_keys(
    out: Annotated[str | None, typer.Option(metavar="FOLDER", help="A new folder for them.")] = None,
) -> None:
    """Make the certificates of a cluster: copy ca.pem, host.pem and host.key to every host of it."""
    from velodrome.run.cluster import keys  # noqa: PLC0415

    made = keys.make(Path(out) if out else None)
    print(f"{made.folder}: copy ca.pem, host.pem and host.key to every host; keep ca.key to yourself.")
    print("Whoever holds host.key can run code on the agents of this cluster.", file=sys.stderr)


def show(coordinator: str, keys: str | None, as_json: bool) -> None:
    """List the agents of a coordinator: roles, CPUs, versions, permissions, clock and round trip."""
    from velodrome.report import listing  # noqa: PLC0415
    from velodrome.usecases import cluster_load  # noqa: PLC0415 - brings Dask

    agents = cluster_load.listed(coordinator, Path(keys) if keys else None)
    print(listing.agents_document(agents) if as_json else "\n".join(listing.agents_lines(agents)))


def register(app: typer.Typer) -> None:
    """Add these commands to the command line."""
    app.command("agent")(agent)
    group = typer.Typer(no_args_is_help=False, rich_markup_mode=None)

    @group.callback(invoke_without_command=True)
    def default(
        context: typer.Context,
        coordinator: Coordinator = USUAL,
        keys: Keys = None,
        as_json: serving.AsJson = False,
    ) -> None:
        if context.invoked_subcommand is None:
            show(coordinator, keys, as_json)

    group.command("start")(start)
    group.command("keys")(make_keys)
    app.add_typer(group, name="cluster", help=show.__doc__)
