"""A coordinator, and agents of this machine: processes of velodrome's own, which end when velodrome does.

    python -m velodrome.run.cluster.coordinator --cpus "" --user "" scheduler '{"host": "127.0.0.1", …}'
    python -m velodrome.run.cluster.coordinator --cpus "" --user "" agent '{"address": "tcp://…", …}'
    python -m velodrome.run.cluster.coordinator --cpus "" --user "" -          the same words, as a list of JSON on the
                                                                               first line of standard input

The first line of standard output is where it listens, or `error` and a sentence. The end of standard input, which is
also the end of whoever started it, ends it; with `beats` so does silence there, because the end of a connection that
was cut is never heard.
"""

import asyncio
import json
import os
import select
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from velodrome.model.errors import CoordinatorError
from velodrome.run import account
from velodrome.run.cluster import holding, keys
from velodrome.run.machine.facts import usable_cpus
from velodrome.run.supervision import own_process, python, scratch

MODULE = "velodrome.run.cluster.coordinator"
START_S = 30.0
"""For one of these processes to listen: it imports Dask, which takes a second."""
BEAT_S = 2.0
SILENCE_S = 10.0
"""Without a beat for so long, whoever started this process over a network is lost."""


@dataclass
class Local:
    """A coordinator and agents of this machine."""

    address: str
    scheduler: python.Child
    agents: dict[str, python.Child]
    """Those that have not been found to have ended, by name."""

    def look(self) -> list[str]:
        """Return a sentence on each agent that has ended since the last look.

        Raises CoordinatorError where the coordinator has ended, or the last agent.
        """
        if self.scheduler.process.poll() is not None:
            raise CoordinatorError(self.address, f"it ended ({self.scheduler.ending()})")
        ended = {name: child for name, child in self.agents.items() if child.process.poll() is not None}
        for name in ended:
            del self.agents[name]
        if ended and not self.agents:
            how = ", ".join(f"{name}: {child.ending()}" for name, child in ended.items())
            raise CoordinatorError(self.address, f"it was ended, as no agent is left ({how})")
        return [f"the agent {name} has ended ({child.ending()})" for name, child in ended.items()]


@contextmanager
def coordinating(
    host: str,
    port: int,
    agents: int,
    *,
    scheme: str = "tcp",
    folder: Path | None = None,
    policy: Mapping[str, Any] | None = None,
) -> Iterator[str]:
    """Run a coordinator and so many agents of this machine; yield its address, with all agents there.

    As `local`, for as long as it takes to do something with them.
    """
    with local(host, port, agents, scheme=scheme, folder=folder, policy=policy) as found:
        yield found.address


@contextmanager
def local(
    host: str,
    port: int,
    agents: int,
    *,
    scheme: str = "tcp",
    folder: Path | None = None,
    policy: Mapping[str, Any] | None = None,
) -> Iterator[Local]:
    """Run a coordinator and so many agents of this machine; yield them with all agents there.

    `scheme` is `tls`, with the keys of `folder`, or `tcp`; `policy` has fields of theirs. Raises
    CoordinatorError, ClusterKeysError.
    """
    from velodrome.run.cluster import talking  # noqa: PLC0415 - brings Dask

    talking.security(scheme, folder)  # raises what is wrong with the keys, before anything is started
    kept = str(folder or "")
    with ExitStack() as stack:
        begun = {"host": host, "port": port, "scheme": scheme, "keys": kept}
        scheduler = _start_child(stack, "scheduler", begun)
        address = _first_line(scheduler, f"{scheme}://{host}:{port}")
        children = {}
        for number, cpus in enumerate(_shares(usable_cpus(), agents)):
            name = f"local-{number}"
            own = {**(policy or {}), "name": name, "cpus": cpus}
            children[name] = _start_child(stack, "agent", {"address": address, "keys": kept, "policy": own})
        for child in children.values():  # each takes a second to import Dask, all at once
            _first_line(child, address)
        try:
            yield Local(address, scheduler, dict(children))
        finally:
            for child in children.values():  # all at once; each takes half a second to leave
                with suppress(BrokenPipeError):
                    child.input.close()


def _start_child(stack: ExitStack, what: str, how: dict[str, Any]) -> python.Child:
    return stack.enter_context(python.start_own(MODULE, what, json.dumps(how)))


def _first_line(child: python.Child, address: str) -> str:
    try:
        line = child.answer(START_S).decode().strip()
    except (TimeoutError, EOFError) as error:
        raise CoordinatorError(address, f"{error} {' '.join(child.last_lines())}".strip()) from error
    if line.startswith("error "):
        raise CoordinatorError(
            address, line.removeprefix("error ").removesuffix("."), "Nothing was left running"
        )
    return line


def _shares(cpus: tuple[int, ...], agents: int) -> list[tuple[int, ...]]:
    """Share CPUs out; where there are fewer of them than agents, some agents share one."""
    if agents > len(cpus):
        return [(cpus[number % len(cpus)],) for number in range(agents)]
    return [cpus[number::agents] for number in range(agents)]


async def schedule(
    host: str,
    port: int,
    scheme: str,
    folder: Path | None,
    *,
    on_ready: Any,
    ended: asyncio.Event,
    place: Path | None = None,
) -> None:
    """Be a coordinator until it is to end; `place` is for its files. Raises CoordinatorError where it cannot listen."""
    from velodrome.run.cluster import talking  # noqa: PLC0415 - brings Dask

    own_process.raise_limit("RLIMIT_NOFILE", talking.FILES)
    scheduler = talking.Scheduler(
        host=host,
        port=port,
        protocol=f"{scheme}://",
        security=talking.security(scheme, folder),
        dashboard=False,
        local_directory=str(place or scratch.make_folder("coordinator")),
    )
    try:
        try:
            await scheduler
        except Exception as error:  # of Dask, around that of the system
            raise CoordinatorError(
                f"{scheme}://{host}:{port}",
                talking.in_words(error),
                "Name another port with --port, and an address that this host has with --host",
            ) from error
        on_ready(scheduler.address)
        await ended.wait()
    finally:
        await scheduler.close()


def main() -> int:
    """Be what the command line says until standard input ends."""
    try:
        what, how = _parse_command(own_process.pin())
        if what == "agent" and how.get("beats") and os.geteuid() == 0:
            _hold_agent(how)
            return 0
        asyncio.run(_serve(what, how))
    except Exception as error:
        print(f"error {own_process.in_words(error)}".replace("\n", " "), flush=True)
        return 2
    return 0


def _parse_command(words: list[str]) -> tuple[str, dict[str, Any]]:
    if words != ["-"]:
        return words[0], json.loads(words[1])
    line = b""
    while not line.endswith(b"\n"):  # nothing follows it but beats, and those when this has answered
        if not (chunk := os.read(0, 1 << 16)):
            raise EOFError("nothing came that says what to do")
        line += chunk
    what, how = json.loads(line)
    return what, how


def _hold_agent(how: Mapping[str, Any]) -> None:
    """Be the root of an agent until standard input ends."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _watch_input(how, lambda: os.kill(os.getpid(), signal.SIGINT))
    with suppress(KeyboardInterrupt):
        holding.hold(
            {name: how.get(name) for name in ("address", "key_files", "host", "port")},
            holding.Policy.read(how["policy"]),
            how.get("account") or "",
            _say,
        )


def _watch_input(how: Mapping[str, Any], end: Callable[[], object]) -> None:
    """Call `end` when whoever started this has gone, and end the process where that takes long."""
    silence_s = SILENCE_S if how.get("beats") else None

    def watch() -> None:
        while select.select([0], [], [], silence_s)[0] and os.read(0, 4096):
            pass
        end()
        threading.Event().wait(3.0)
        os._exit(3)

    threading.Thread(target=watch, daemon=True).start()


async def _serve(what: str, how: dict[str, Any]) -> None:
    from velodrome.run.cluster import agent, talking  # noqa: PLC0415 - in the child only

    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    _watch_input(how, lambda: loop.call_soon_threadsafe(ended.set))
    folder = Path(how["keys"]) if how.get("keys") else None
    sent = how.get("key_files") or {}
    place = None
    if what == "scheduler" and os.geteuid() == 0:
        # Code can be run on a scheduler, too. Its folder lies in one of root's, which is swept whoever dies.
        if folder is not None:
            sent = keys.contents(keys.Keys(folder))
        nobody, place = account.unused_account(), scratch.make_folder("coordinator")
        holding.give(place, nobody)
        own_process.become(nobody.identity)
    elif what == "worker":
        own_process.give_up_root(keep=0)
    if sent:
        folder = keys.write_keys(place / "keys" if place else scratch.make_folder("keys"), sent).folder
    if what == "scheduler":
        at = (how["host"], how["port"], how["scheme"], folder)
        try:
            await schedule(*at, on_ready=_say, ended=ended, place=place)
        finally:
            if place is not None:  # the folder around it is root's, and goes at the next start
                shutil.rmtree(place, ignore_errors=True)
        return
    address = talking.Address.read(how["address"])
    serving = asyncio.ensure_future(
        agent.serve(
            str(address),
            agent.Policy.read(how["policy"]),
            talking.security(address.scheme, folder),
            starter=holding.Held(how["holder"]) if what == "worker" else None,
            host=how.get("host") or None,
            port=how.get("port") or 0,
            on_ready=lambda started: _say(f"{started.name} {started.address}"),
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
