"""A stack started as a race starts it, in sight of all that it could leave behind."""

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
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
        with contextlib.suppress(psutil.NoSuchProcess):
            first = psutil.Process(self.server.pid)
            return [first, *first.children(recursive=True)]
        return []

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
