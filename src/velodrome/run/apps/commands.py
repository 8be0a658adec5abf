"""The commands that a user has run before a race and after it: a database filled, containers started, a cache emptied.

with around("docker compose up -d --wait", "docker compose down", cwd="/home/me/shop", variables={}):
    ...

What the first leaves running (`redis-server &`) lives until the end of the block, and not longer: it gets
SIGTERM then, and SIGKILL after `STOP_S`.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from velodrome.model.errors import CommandFailedError, TeardownInterruptedError, VelodromeError
from velodrome.run.account import acting, current_variables, hand_over
from velodrome.run.supervision import scratch
from velodrome.run.supervision.undisturbed import BREAKS_AT, interrupts, undisturbed
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
    *,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[str, ...]]:
    """Run one command before the block and one after it, however it ends; empty commands are none.

    The command after runs also when the command before is interrupted (KeyboardInterrupt), and not when it fails by
    itself. It runs to its end, or to its limit, whatever signals come; the third interrupt of all ends it. `tell` hears
    of it where the block was interrupted. `variables` count before those of our own environment. Raises
    CommandFailedError when a command fails or does not end in time; of the command after the block only where the block
    itself did not raise. Raises TeardownInterruptedError.
    """
    env = {**os.environ, **current_variables(), **variables}

    def say(text: str) -> None:
        # A terminal that has gone, or a signal within a print, must not end what is to run to its end.
        with suppress(OSError, ValueError, RuntimeError):
            tell(text)

    def tear_down(because: BaseException) -> None:
        if interrupts() and teardown:
            say(f"interrupted; --teardown runs now, for {longest_s:g} s at most")
        try:
            with (
                _without_interruption(teardown, say, because),
                _run("--teardown", teardown, cwd, env, longest_s),
            ):
                pass
        except CommandFailedError as error:
            say(str(error))

    begun = False
    try:
        with _run("--setup", setup, cwd, env, longest_s) as output:
            begun = True
            try:
                yield output
            except BaseException as error:
                tear_down(error)
                raise
            with _without_interruption(teardown, say), _run("--teardown", teardown, cwd, env, longest_s):
                pass
    except KeyboardInterrupt as error:
        # Stopped halfway through the first command: there may be something to take down.
        if not begun:
            tear_down(error)
        raise


@contextmanager
def _without_interruption(
    command: str, tell: Callable[[str], None], because: BaseException | None = None
) -> Iterator[None]:
    """Let no signal end the block but that of number `BREAKS_AT`, counted from the first of all.

    `because`: what ended the race. Raises TeardownInterruptedError.
    """

    def on_signal(number: int) -> None:
        left = BREAKS_AT - number
        if left > 0 and command:
            tell(f"--teardown still runs; {left} more interrupt{'s' if left > 1 else ''} would end it")

    ended = False
    try:
        with undisturbed(BREAKS_AT, on_signal):
            try:
                yield
            except KeyboardInterrupt:
                ended = True
                raise
    except KeyboardInterrupt as error:
        if ended and command:
            before = str(because) if isinstance(because, VelodromeError) else ""
            raise TeardownInterruptedError(command, interrupts(), before) from error
        raise


@contextmanager
def _run(
    option: str, command: str, cwd: str, env: Mapping[str, str], longest_s: float
) -> Iterator[tuple[str, ...]]:
    """Run a command to its end; what it left in the background lives as long as the block."""
    if not command:
        yield ()
        return
    with scratch.hold_folder("command") as folder:
        hand_over(folder)
        ended = folder / "ended"
        variables = {**env, "VELODROME_COMMAND": command, "VELODROME_ENDED": str(ended)}
        order = Order(
            (SHELL, "-c", HELD),
            variables,
            cwd,
            stop_everyone=True,
            orphan_deadline_s=STOP_S,
            user=acting(),
        )
        with Ward(order) as ward:
            how = _ending(ward, ended, longest_s)
            if how:
                ward.stop()  # what it printed last has surely been read once nobody can print any more
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
