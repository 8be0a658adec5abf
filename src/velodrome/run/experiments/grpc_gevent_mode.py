"""R4: grpcio in a process that gevent has patched, in its compatibility mode and left out of it.

As a server: how `calls` calls end that are made one after the other, each with a deadline. As a client: how long
`calls_at_once` calls take that take `ms` each. Facts by mode, `in` and `out`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from velodrome.guest.grpc.greeter import PEER
from velodrome.guest.stack import Process
from velodrome.model.claim import Fact, Setting
from velodrome.run.environments.environment import Environment
from velodrome.run.experiments.experiment import Kind, Outcome
from velodrome.run.experiments.programs import (
    VERSIONS,
    Served,
    address,
    environment_of,
    listening,
    run_program,
)
from velodrome.run.lab import Lab

UNDER_GEVENT = "velodrome.guest.experiments.grpc_under_gevent"
CALLS = "velodrome.guest.experiments.grpc_calls"
MODES = {"in": "with the mode", "out": "without it"}


def in_mode(mode: str) -> Callable[[Process], Process]:
    """Return what starts the same server in the mode, or out of it."""

    def under(process: Process) -> Process:
        return replace(process, argv=("-m", UNDER_GEVENT, "server", f"--mode={mode}", *process.argv[2:]))

    return under


def run(settings: Mapping[str, Setting], lab: Lab) -> Outcome:
    """Try server and client in both ways."""
    made = environment_of(str(settings["stack"]), settings, lab)
    facts: dict[str, Fact] = {}
    parts = [*_as_server(made, settings, lab, facts), *_as_client(made, settings, lab, facts)]
    return Outcome(facts, f"grpcio patched by gevent: {'; '.join(parts)}.")


def _as_server(
    made: Environment, settings: Mapping[str, Setting], lab: Lab, facts: dict[str, Fact]
) -> Iterator[str]:
    deadline_s = float(settings["deadline_ms"]) / 1000  # type: ignore[arg-type]
    wanted = (f"--calls={settings['calls']}", f"--deadline={deadline_s}")
    for mode, words in MODES.items():
        served = Served(str(settings["stack"]), PEER, made, under=in_mode(mode))
        with listening(served, lab) as server:
            found = run_program(made, lab, CALLS, f"--address={address(server)}", *wanted)
        facts[f"server_ok.{mode}"] = float(found["statuses"].get("OK", 0))
        facts[f"server_status.{mode}"] = "+".join(found["statuses"])
        facts[f"server_s.{mode}"] = found["seconds"]
        yield f"calls to a server {words} end {facts[f'server_status.{mode}']}"


def _as_client(
    made: Environment, settings: Mapping[str, Setting], lab: Lab, facts: dict[str, Fact]
) -> Iterator[str]:
    calls, ms = settings["calls_at_once"], settings["ms"]
    with listening(Served("grpc-threads", PEER, made), lab) as server:
        wanted = (f"--address={address(server)}", f"--calls={calls}", f"--ms={ms}")
        for mode, words in MODES.items():
            found = run_program(made, lab, UNDER_GEVENT, "client", f"--mode={mode}", *wanted)
            facts[f"client_ok.{mode}"] = float(found["statuses"].get("OK", 0))
            facts[f"client_s.{mode}"] = found["seconds"]
            yield f"{calls} calls at once of {ms} ms by a client {words} take {found['seconds']:.2f} s"


experiment = Kind(
    "grpc-gevent-mode",
    "what does grpcio do in a process patched by gevent, with and without its compatibility mode?",
    run,
    {
        **VERSIONS,
        "stack": "grpc-gevent",
        "calls": 3,
        "deadline_ms": 2000,
        "calls_at_once": 10,
        "ms": 200,
    },
    deadline_s=120.0,
)
