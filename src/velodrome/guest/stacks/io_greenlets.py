"""Greenlets switched by hand, over a selector: each connection is a greenlet, with a stack of its own."""

from __future__ import annotations

from typing import Any

from velodrome.guest.raw.coroutines import READ, Attended, Hub, hub
from velodrome.guest.raw.process import accept_waiting, arguments, command, end_on_sigterm, open_listener
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.workers import load


def _command(launch: Launch) -> Process:
    return command("velodrome.guest.stacks.io_greenlets", launch)


stack = Stack(
    name="io-greenlets",
    title="I/O model · greenlets by hand",
    about="one thread, a greenlet for each connection, which it keeps (keep-alive); where one would wait it "
    "switches to the loop, which switches to another; SQLite blocks all",
    interface="socket_greenlets",
    concurrency="greenlets",
    command=_command,
    requires=("greenlet==3.5.6",),
    knobs={"backlog": 1000},
    python=(3, 10),  # the oldest that greenlet runs on
)


def attend(connection: Attended, converse: Any) -> None:
    """Serve one connection till it ends."""
    converse(connection, True)
    connection.close()


def receive(listener: Any, converse: Any, of: Hub) -> None:
    """Take connections in as they come, for ever."""
    while True:
        of.until_ready(READ, listener.fileno())
        for connected in accept_waiting(listener):
            of.start(attend, Attended(connected), converse)


def main() -> None:
    """Serve till SIGTERM."""
    options = arguments("backlog")
    end_on_sigterm()
    hub().start(receive, open_listener(options), load(options.app), hub())
    hub().run()


if __name__ == "__main__":
    main()
