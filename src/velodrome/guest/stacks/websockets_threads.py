"""The websockets library on threads: a thread for each connection.

python -m velodrome.guest.stacks.websockets_threads --app MODULE:ATTRIBUTE --port PORT
"""

from __future__ import annotations

from velodrome.guest.raw.process import end_on_sigterm
from velodrome.guest.stack import Launch, Process, Stack
from velodrome.guest.stacks.websockets_asyncio import ONLY_CHATS, serve_with
from velodrome.guest.workers import arguments, listen, load

PROGRAM = "velodrome.guest.stacks.websockets_threads"


def command(launch: Launch) -> Process:
    """Return the command line: this file is the program."""
    return serve_with(PROGRAM, launch)


stack = Stack(
    name="websockets-threads",
    title="websockets · threads",
    about="Two threads for each WebSocket, one that reads the socket and one that handles the messages.",
    interface="websockets_threads",
    concurrency="threads",
    command=command,
    knobs={"backlog": 2048},
    cannot=ONLY_CHATS,
    python=(3, 10),
)


def main() -> None:
    """Serve till SIGTERM."""
    from websockets.sync.server import serve

    options = arguments(PROGRAM).parse_args()
    listener = listen(options.host, options.port, options.backlog)
    listener.setblocking(True)
    end_on_sigterm()
    app = load(options.app)
    # Whoever sends to a room waits for a member that is just leaving, so long at most: ten seconds by default.
    with serve(app, sock=listener, compression=None, ping_interval=None, close_timeout=1) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
