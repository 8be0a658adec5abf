"""The commands that a user has run before a race and after it: a database filled, containers started, a cache emptied.

with around("docker compose up -d --wait", "docker compose down", cwd="/home/me/shop", variables={}):
    ...

What the first leaves running (`redis-server &`) lives until the end of the block, and not longer: it gets
SIGTERM then, and SIGKILL after `STOP_S`.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from velodrome.model.errors import CommandFailedError
from velodrome.run.supervision import scratch
from velodrome.run.supervision.ward import Order, Ward

LONGEST_S = 600.0
STOP_S = 10.0
"""What is left running may take so long to end in order: a database writes down what it holds."""
LAST_LINES = 12
SHELL = "/bin/sh"
HELD = """( eval "$VELODROME_COMMAND" )
echo $? > "$VELODROME_ENDED.partly"
mv "$VELODROME_ENDED.partly" "$VELODROME_ENDED"
exec sleep 2147483647
"""
"""The command, and then something that stays: a warden ends what is left of a tree when its root has ended."""


@contextmanager
def around(
    setup: str,
    teardown: str,
    cwd: str,
    variables: Mapping[str, str],
    longest_s: float = LONGEST_S,
) -> Iterator[tuple[str, ...]]:
    """Run one command before the block and one after it, however it ends; empty ones are none.

    The one after runs also when the one before is interrupted (KeyboardInterrupt), and not when it fails by itself.
    `variables` count before those of our own environment. Raises CommandFailedError when one fails or does not end in
    time; of the one after the block only where the block itself did not raise.
    """
    env = {**os.environ, **variables}

    def tear_down() -> None:
        with suppress(CommandFailedError), _run("--teardown", teardown, cwd, env, longest_s):
            pass

    begun = False
    try:
        with _run("--setup", setup, cwd, env, longest_s) as said:
            begun = True
            try:
                yield said
            except BaseException:
                tear_down()
                raise
            with _run("--teardown", teardown, cwd, env, longest_s):
                pass
    except KeyboardInterrupt:
        # Stopped halfway through the first command: there may be something to take down.
        if not begun:
            tear_down()
        raise


@contextmanager
def _run(
    option: str, command: str, cwd: str, env: Mapping[str, str], longest_s: float
) -> Iterator[tuple[str, ...]]:
    """Run a command to its end; what it left in the background lives as long as the block."""
    if not command:
        yield ()
        return
    with scratch.held("command") as folder:
        ended = folder / "ended"
        told = {**env, "VELODROME_COMMAND": command, "VELODROME_ENDED": str(ended)}
        order = Order((SHELL, "-c", HELD), told, cwd, stop_everyone=True, orphan_deadline_s=STOP_S)
        with Ward(order) as ward:
            how = _ending(ward, ended, longest_s)
            if how:
                raise CommandFailedError(option, command, how, ward.tail.lines(LAST_LINES))
            yield ward.tail.lines(LAST_LINES)


def _ending(ward: Ward, ended: Path, longest_s: float) -> str:
    """Wait for the command; return how it failed, or nothing."""
    until = time.monotonic() + longest_s
    while time.monotonic() < until:
        if ended.exists():
            code = ended.read_text().strip()
            return "" if code == "0" else f"exit {code}"
        if (exited := ward.wait(0.05)) is not None:
            return exited.sentence
    return f"it did not end within {longest_s:g} s"
