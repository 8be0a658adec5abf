"""Agents of this machine that take themselves for the only ones of a host each."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from velodrome.run.cluster import talking
from velodrome.usecases import cluster_load

HOST = "127.0.0.1"
SOON_S = 60.0
"""Within which what is begun or ended on hosts has come about; beside other tests it may be slow at it."""
AGENT = """
import asyncio, socket, sys
from velodrome.run.cluster import agent, talking
name = sys.argv[2]
socket.gethostname = lambda: f"host-of-{{name}}"
{change}
asyncio.run(agent.serve(sys.argv[1], agent.Policy(name), talking.security("tcp"), host="127.0.0.1",
                        on_ready=lambda _: print("here", flush=True)))
"""


@contextmanager
def agent(address: str, name: str, change: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """Run an agent that takes itself for the only one of its host."""
    started = subprocess.Popen(
        [sys.executable, "-c", AGENT.format(change=change), address, name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert started.stdout is not None
        assert started.stdout.readline() == b"here\n"
        yield started
    finally:
        started.kill()
        started.wait()
        for pipe in (started.stdin, started.stdout):
            if pipe is not None:
                pipe.close()


def races_of(agent_pid: int) -> list[psutil.Process]:
    return psutil.Process(agent_pid).children(recursive=True)


def list_agents(agents: str, folder: Path | None = None) -> list[dict[str, Any]]:
    """Return what agents a coordinator has, with their clocks, and not what lies between them, which takes longer."""
    address = talking.Address.read(agents)
    security = talking.security(address.scheme, folder)

    async def listed() -> list[dict[str, Any]]:
        async with cluster_load._meet(address, security) as players:
            return [cluster_load._row(player) for player in players]

    return talking.run(listed())
