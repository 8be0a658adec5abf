"""A stack started as a race starts it, in sight of all that it could leave behind."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from velodrome.guest import catalog
from velodrome.guest.recipe import Recipe
from velodrome.guest.stack import KnobValue, Launch, Process, Stack
from velodrome.run.drivers.driver import Target
from velodrome.run.machine.limits import Bounds
from velodrome.run.servers import NotReady, Server, Serving, Stopped, await_right_answer, fresh_port

BOOT_S = 30.0
STOP_S = 10.0
LINES = 100
SETTLING_S, SETTLED_S = 0.5, 0.015
"""A program that used less CPU in a while may have settled."""
QUIET = 2
"""It has after so many such whiles, one after the other."""


def tree_of(pid: int) -> list[psutil.Process]:
    """Return a process and all below it that live."""
    with contextlib.suppress(psutil.NoSuchProcess):
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    return []


def settle(processes: Callable[[], Sequence[psutil.Process]]) -> None:
    """Wait until these do nothing: some programs that are stopped while their workers start never end.

    On a busy machine a worker may use no CPU for a while because it gets none; then it is ready to run.
    """
    until, before, quiet = time.monotonic() + BOOT_S, -1.0, 0
    while time.monotonic() < until and quiet < QUIET:
        used, ready = 0.0, False
        for process in processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                used += sum(process.cpu_times()[:2])
                ready = ready or process.status() == psutil.STATUS_RUNNING
        quiet = quiet + 1 if used - before < SETTLED_S and not ready else 0
        before = used
        time.sleep(SETTLING_S)


@dataclasses.dataclass
class Booted:
    """A running server that has given a right answer."""

    server: Server
    folder: Path
    """Its home and temporary folder."""

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.server.serving.port

    def processes(self) -> list[psutil.Process]:
        """Return the living processes of its tree."""
        return tree_of(self.server.pid)

    def settle(self) -> None:
        """Wait until it does nothing."""
        settle(self.processes)

    def output(self) -> str:
        """Return what it has written to its standard output and error."""
        return "\n".join(self.server.last_lines(LINES))

    def files(self) -> list[str]:
        """Return what is in its home and temporary folder and, while it runs, where it was started."""
        found = [*self.folder.rglob("*")]
        with contextlib.suppress(psutil.NoSuchProcess):
            found += Path(psutil.Process(self.server.pid).cwd()).rglob("*")
        return [str(path) for path in found]

    def stop(self) -> Stopped:
        """Send the stop signal, and look what is left."""
        return self.server.stop(STOP_S)


@contextlib.contextmanager
def booted(
    stack: Stack,
    recipe: Recipe,
    python: Path,
    tree: Path,
    upstream: str,
    folder: Path,
    knobs: Mapping[str, KnobValue] | None = None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[Booted]:
    """Start a stack with a recipe and wait for its first right answer; `variables`: of its environment, more."""
    folder.mkdir(exist_ok=True)

    def command(launch: Launch) -> Process:
        # Folders that are not removed with the server, so that files can be found in them.
        process = stack.command(launch)
        own = {"HOME": str(folder), "TMPDIR": str(folder), **(variables or {})}
        return dataclasses.replace(process, env={**process.env, **own})

    watched = dataclasses.replace(stack, command=command)
    serving = Serving(watched, recipe, python, tree, fresh_port(), knobs=knobs or {}, upstream=upstream)
    with Server(serving, Bounds("nothing")) as server:
        target = Target.of_recipe(server.url, recipe)
        target = dataclasses.replace(target, expect_body=catalog.interface(stack.interface).answer(recipe))
        ready = await_right_answer(target, server.exit, server.started, BOOT_S, recipe.wait_ms / 1000)
        if isinstance(ready, NotReady):
            raise AssertionError("\n".join([ready.reason, *server.last_lines(LINES)]))
        yield Booted(server, folder)
