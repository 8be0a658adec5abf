"""`velodrome compare`: serve an app of the user's own on every stack that can, and say which one to deploy."""

from pathlib import Path
from typing import Annotated, Any

import typer

from velodrome.cli import _app_options as apps
from velodrome.cli import _server_options as server
from velodrome.cli.main import heavy
from velodrome.model.load import INDEPENDENT
from velodrome.usecases.terms import Terms

NAME = "compare"
DEFAULTS = Terms()


@apps.describes_an_app
def command(
    context: typer.Context,
    app: Annotated[
        list[str],
        typer.Argument(
            help="module:attribute, module:factory, a Django settings module; each of several is ranked separately."
        ),
    ],
    connections: server.Connections = DEFAULTS.connections,
    rate: Annotated[
        float | None,
        server.of_load(help="Requests per second of the open loop (one that all likely winners can carry)."),
    ] = None,
    arrivals: server.OfUsers = INDEPENDENT,
    length: server.Length = "5s",
    blocks: Annotated[
        int | None,
        server.of_load(min=1, help="Number of repeats of everything (until it is settled)."),
    ] = None,
    budget: Annotated[
        str, server.of_results(help="Time limit (what 3 blocks of all contestants take).")
    ] = "",
    stack: Annotated[
        list[str] | None,
        server.of_server(help="Only this stack, or yours in ./mine.py (all that can serve it); repeatable."),
    ] = None,
    cpus: server.Cpus = None,
    memory: server.Memory = "",
    link: server.Between = "",
    seed: Annotated[int, server.of_load(help="Seed of the order of trials.")] = DEFAULTS.seed,
    out: Annotated[
        Path | None,
        server.of_results(help="Folder for results and report (runs/<date>-compare-…)."),
    ] = None,
    resume: Annotated[
        bool, server.of_results("--resume", help="Continue an interrupted comparison.")
    ] = False,
    paste: server.Paste = False,
    wait: server.Wait = False,
    dry_run: server.DryRun = False,
    agents: server.Agents = "",
    keys: server.Keys = "",
    server_on: server.ServerOn = "",
    load_from: server.LoadFrom = "",
    third_party_on: server.ThirdPartyOn = "",
    send: server.Send = False,
    revision: Annotated[
        str,
        server.of_results(metavar="REVISION", help="Send this git revision instead of the folder as it is."),
    ] = "",
    **_of_app: Any,
) -> None:
    """Serve APP on every stack that can, with its own interpreter and packages, and rank the stacks."""
    with heavy:
        from velodrome.cli._shown import Shown  # noqa: PLC0415
        from velodrome.run.lab import OnHosts  # noqa: PLC0415
        from velodrome.usecases import compare  # noqa: PLC0415
        from velodrome.usecases.apps import split_stacks  # noqa: PLC0415
        from velodrome.usecases.events import Events  # noqa: PLC0415

    server.check_folder(out, resume=resume)
    mix = apps.mix(context.params)
    specs = [apps.app_spec(one, context.params, mix.requests) for one in app]
    names, extra = split_stacks(stack or ())
    terms = Terms(
        connections,
        server.rate("--rate", rate) or mix.peak_rps,
        server.limits(cpus, memory),
        blocks,
        server.seconds("-z", length),
        seed=seed,
        link=server.between(link),
        stacks=names,
        arrivals=arrivals,
        budget_s=server.budget(budget) if budget else None,
    )
    spec = compare.CompareSpec(
        tuple(specs),
        terms,
        extra,
        resume,
        wait,
        server.agents(agents, keys, send=send, revision=revision),
        Path(keys) if keys else None,
        OnHosts(server_on, server.names(load_from), third_party_on),
        send,
        revision,
    )
    if dry_run:
        server.show_plan(compare.dry_run(spec, out, Events()))
        return
    with Shown(paste=paste) as shown:
        compare.compare(spec, out, shown)


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command(NAME)(command)
