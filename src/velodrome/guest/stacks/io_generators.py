"""Generator coroutines over a selector: each connection is a generator, resumed with what it waited for."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from velodrome.guest.raw.coroutines import READ, Talk, Trampoline, Waiting
from velodrome.guest.raw.process import accept_waiting, arguments, command, end_on_sigterm, open_listener
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.workers import load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.io_generators", launch)


stack = Stack(
    name="io-generators",
    title="I/O model · generator coroutines",
    about="one thread, a generator for each connection, which it keeps (keep-alive); where one would wait it "
    "yields to the loop, which resumes another; SQLite blocks all",
    interface="socket_generators",
    concurrency="generators",
    command=_command,
    knobs={"backlog": 1000},
)


def attend(talk: Talk, converse: Any) -> Waiting:
    """Serve one connection till it ends."""
    with suppress(OSError):  # the other side is gone: nobody is left to answer
        yield from converse(talk)
    yield from talk.close()


def receive(listener: Any, converse: Any, trampoline: Trampoline) -> Waiting:
    """Take connections in as they come, for ever."""
    while True:
        yield (READ, listener.fileno(), None)
        for connected in accept_waiting(listener):
            trampoline.start(attend(Talk(connected), converse))


def main() -> None:
    """Serve till SIGTERM."""
    options = arguments("backlog")
    end_on_sigterm()
    trampoline = Trampoline()
    trampoline.start(receive(open_listener(options), load(options.app), trampoline))
    trampoline.run()


if __name__ == "__main__":
    main()
