"""The way to a coordinator and its agents: addresses, certificates, and one call of an agent.

Dask carries the bytes. What is sent are numbers, text and bytes, so that nothing of it is unpickled.
"""

import asyncio
import logging
import socket
from collections.abc import Collection, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from velodrome.model.errors import (
    AgentLostError,
    ClusterMissingError,
    CoordinatorError,
)
from velodrome.run.cluster import keys
from velodrome.run.cluster.address import PORT, Address, is_loopback

try:
    import dask
    from distributed import Scheduler, Worker
    from distributed.core import rpc
    from distributed.security import Security
except ImportError as error:
    raise ClusterMissingError(str(error)) from error

__all__ = [
    "PORT",
    "Address",
    "Line",
    "Scheduler",
    "Security",
    "Worker",
    "in_words",
    "is_loopback",
    "own_address",
    "run",
    "security",
    "workers",
]

for _name in ("distributed", "distributed.worker", "distributed.scheduler", "distributed.core", "tornado"):
    # What goes wrong is reported here, in sentences; and a log of Dask's might quote what was sent.
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)

# Else each agent looks at its own stack a hundred times a second, and at its loop fifty times, on the load's CPUs.
dask.config.set(
    {
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "10s",
        "distributed.admin.system-monitor.interval": "5s",
    }
)

Result = TypeVar("Result")

FILES = 1 << 20
"""Descriptors that a coordinator or a command would like to have: some for each agent, and 1,024 are usual."""
ANSWER_S = 5.0
"""For a coordinator or an agent to be reached and to say something short."""
CONNECT_S = 4.0
"""Less, so that the error says why: Dask tries until then."""
KIND = "velodrome-agent"
"""The resource by which agents are known among workers of Dask."""


def own_address(towards: Address) -> str:
    """Return the address of this host on the way to a coordinator, which others there reach it by.

    Nothing is sent. Raises CoordinatorError where there is no way.
    """
    try:
        kind, _, _, _, place = socket.getaddrinfo(towards.host, towards.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(kind, socket.SOCK_DGRAM) as way:
            way.connect(place)
            return str(way.getsockname()[0])
    except OSError as error:
        raise CoordinatorError(str(towards), error.strerror or str(error)) from error


def security(scheme: str, folder: Path | None = None) -> Security:
    """Return the certificates for a connection, of `folder` or the usual one. Raises ClusterKeysError."""
    if scheme == "tcp":
        return Security(require_encryption=False)
    found = keys.find_keys(folder)
    fields: dict[str, Any] = {"tls_ca_file": str(found.authority)}
    for role in ("client", "worker", "scheduler"):
        fields |= {f"tls_{role}_cert": str(found.certificate), f"tls_{role}_key": str(found.key)}
    return Security(require_encryption=True, **fields)


@lru_cache(maxsize=8)
def _as_client(security: Security) -> dict[str, Any]:
    """Return how to connect with these certificates; to read them takes 2 ms, and there may be thousands of agents."""
    found: dict[str, Any] = security.get_connection_args("client")
    return found


class Line:
    """A connection to one agent or coordinator; made anew where it breaks."""

    def __init__(self, address: str, name: str, security: Security) -> None:
        self.address, self.name = address, name
        self._rpc = rpc(address, timeout=CONNECT_S, connection_args=_as_client(security))

    async def call(self, operation: str, limit_s: float = ANSWER_S, **facts: Any) -> Any:
        """Return what the other side answers. Raises AgentLostError where it does not within the limit."""
        try:
            return await asyncio.wait_for(getattr(self._rpc, operation)(**facts), limit_s)
        except TimeoutError as error:
            raise AgentLostError(self.name, self.address, f"silent for {limit_s:g} s") from error
        except Exception as error:  # of the transport, or whatever the other side raised
            raise AgentLostError(self.name, self.address, in_words(error)) from error

    async def close(self) -> None:
        """Hang up."""
        with suppress(Exception):
            await asyncio.wait_for(self._rpc.close_rpc(), 1.0)


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run what talks to agents, to its end; when it is interrupted, until it has ended what it began.

    Not `asyncio.run`: that takes Ctrl-C for itself, and a load that is interrupted shows what it measured. In a
    notebook, whose own loop runs, by a thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_run, work).result()


def _run(work: Coroutine[Any, Any, Result]) -> Result:
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)
    try:
        return loop.run_until_complete(task)
    except KeyboardInterrupt:
        if not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
        raise
    finally:
        # Of Dask, and calls that nobody waits for any more.
        loop.run_until_complete(cancel_all(asyncio.all_tasks(loop)))
        loop.close()


AGAIN_S = 0.2


async def cancel_all(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and return when all have ended.

    Once is not enough: `asyncio.wait_for` of Python 3.11 forgets a cancellation that comes together with its result.
    """
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)


def in_words(error: BaseException) -> str:
    """Return the innermost cause of an error of Dask's, which wraps them."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, asyncio.CancelledError | TimeoutError | ConnectionRefusedError):
        return "nothing answers there"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


async def workers(address: Address, security: Security) -> Mapping[str, Mapping[str, Any]]:
    """Return the agents that a coordinator knows, by their addresses. Raises CoordinatorError."""
    line = Line(str(address), "coordinator", security)
    try:
        identity = await line.call("identity")
    except AgentLostError as error:
        raise CoordinatorError(str(address), error.why) from error
    finally:
        await line.close()
    if not isinstance(identity, Mapping) or identity.get("type") != "Scheduler":
        raise CoordinatorError(str(address), "what listens there is no scheduler of Dask")
    return {
        where: worker
        for where, worker in identity["workers"].items()
        if KIND in (worker.get("resources") or {})
    }
