"""A coordinator, and agents of this machine: processes of velodrome's own, which end when velodrome does.

    python -m velodrome.run.cluster.coordinator --cpus "" --user "" scheduler '{"host": "127.0.0.1", …}'
    python -m velodrome.run.cluster.coordinator --cpus "" --user "" agent '{"address": "tcp://…", …}'

The first line of standard output is where it listens, or `error` and a sentence. The end of standard input, which is
also the end of whoever started it, ends it.
"""

import asyncio
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from velodrome.model.errors import CoordinatorError, PlainTcpError
from velodrome.run.machine.facts import usable_cpus
from velodrome.run.supervision import own_process, python, scratch

MODULE = "velodrome.run.cluster.coordinator"
START_S = 30.0
"""For one of these processes to listen: it imports Dask, which takes a second."""


@contextmanager
def coordinating(
    host: str, port: int, agents: int, *, scheme: str = "tcp", folder: Path | None = None
) -> Iterator[str]:
    """Run a coordinator and so many agents of this machine; yield its address, with all agents there.

    `scheme` is `tls`, with the keys of `folder`, or `tcp`. Raises CoordinatorError, ClusterKeysError.
    """
    from velodrome.run.cluster import talking  # noqa: PLC0415 - brings Dask

    talking.security(scheme, folder)  # raises what is wrong with the keys, before anything is started
    keys = str(folder or "")
    with ExitStack() as stack:
        begun = {"host": host, "port": port, "scheme": scheme, "keys": keys}
        address = _first_line(_begun(stack, "scheduler", begun), f"{scheme}://{host}:{port}")
        children = [
            _begun(
                stack,
                "agent",
                {"address": address, "keys": keys, "policy": {"name": f"local-{number}", "cpus": cpus}},
            )
            for number, cpus in enumerate(_shares(usable_cpus(), agents))
        ]
        for child in children:  # each takes a second to import Dask, all at once
            _first_line(child, address)
        try:
            yield address
        finally:
            for child in children:  # all at once; each takes half a second to leave
                with suppress(BrokenPipeError):
                    child.input.close()


def _begun(stack: ExitStack, what: str, how: dict[str, Any]) -> python.Child:
    return stack.enter_context(python.start_own(MODULE, what, json.dumps(how)))


def _first_line(child: python.Child, address: str) -> str:
    try:
        line = child.answer(START_S).decode().strip()
    except (TimeoutError, EOFError) as error:
        raise CoordinatorError(address, f"{error} {' '.join(child.last_lines())}".strip()) from error
    if line.startswith("error "):
        raise CoordinatorError(address, line.removeprefix("error "))
    return line


def _shares(cpus: tuple[int, ...], agents: int) -> list[tuple[int, ...]]:
    """Share CPUs out; where there are fewer of them than agents, some agents share one."""
    if agents > len(cpus):
        return [(cpus[number % len(cpus)],) for number in range(agents)]
    return [cpus[number::agents] for number in range(agents)]


async def schedule(
    host: str, port: int, scheme: str, folder: Path | None, *, on_ready: Any, ended: asyncio.Event
) -> None:
    """Be a coordinator until it is to end. Raises OSError where it cannot listen."""
    from velodrome.run.cluster import talking  # noqa: PLC0415 - brings Dask

    own_process.raise_limit("RLIMIT_NOFILE", talking.FILES)
    scheduler = talking.Scheduler(
        host=host,
        port=port,
        protocol=f"{scheme}://",
        security=talking.security(scheme, folder),
        dashboard=False,
        local_directory=str(scratch.made("coordinator")),
    )
    try:
        await scheduler
        on_ready(scheduler.address)
        await ended.wait()
    finally:
        await scheduler.close()


def refuse_plain(address: str, *, plain: bool) -> None:
    """Raise PlainTcpError for a way without TLS that others than this machine could use, and that nobody accepts."""
    from velodrome.run.cluster import talking  # noqa: PLC0415 - brings Dask

    read = talking.Address.read(address)
    if read.scheme == "tcp" and not talking.is_loopback(read.host) and not plain:
        raise PlainTcpError(str(read))


def main() -> int:
    """Be what the command line says until standard input ends."""
    what, said = own_process.pinned()
    how = json.loads(said)
    try:
        asyncio.run(_served(what, how))
    except Exception as error:
        print(f"error {own_process.in_words(error)}".replace("\n", " "), flush=True)
        return 2
    return 0


async def _served(what: str, how: dict[str, Any]) -> None:
    from velodrome.run.cluster import agent, talking  # noqa: PLC0415 - in the child only

    folder = Path(how["keys"]) if how["keys"] else None
    ended, loop = asyncio.Event(), asyncio.get_running_loop()

    def watch() -> None:
        while os.read(0, 4096):
            pass
        loop.call_soon_threadsafe(ended.set)
        threading.Event().wait(3.0)
        os._exit(3)

    threading.Thread(target=watch, daemon=True).start()
    if what == "scheduler":
        await schedule(how["host"], how["port"], how["scheme"], folder, on_ready=_say, ended=ended)
        return
    policy = agent.Policy(name=how["policy"]["name"], cpus=tuple(how["policy"]["cpus"]))
    address = talking.Address.read(how["address"])
    serving = asyncio.ensure_future(
        agent.serve(
            str(address),
            policy,
            talking.security(address.scheme, folder),
            host="127.0.0.1" if talking.is_loopback(address.host) else None,
            on_ready=lambda one: _say(one.address),
        )
    )
    waiting = asyncio.ensure_future(ended.wait())
    await asyncio.wait((serving, waiting), return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    serving.cancel()
    await asyncio.wait((serving,), timeout=2.0)


def _say(address: str) -> None:
    print(address, flush=True)


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.exit(status)
