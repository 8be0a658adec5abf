"""grpcio's server with its pool of threads.

python -m velodrome.guest.stacks.grpc_threads --app MODULE:ATTRIBUTE --port PORT --threads 100 [--workers N]
"""

from __future__ import annotations

import signal
from argparse import Namespace

from velodrome.guest.grpc import processes
from velodrome.guest.grpc.processes import GRACE_S, command, leave, serve_in_each, shares_port, with_threads
from velodrome.guest.interface import GRPCIO
from velodrome.guest.stack import Launch, Process, Stack, one_per_thread
from velodrome.guest.workers import STOPS, arguments, load

PROGRAM = "velodrome.guest.stacks.grpc_threads"


def _command(launch: Launch) -> Process:
    return command(PROGRAM, launch)


stack = Stack(
    name="grpc-threads",
    title="grpcio · threads",
    about="grpcio's C core hands each call to a pool of threads; a call that waits holds one of it.",
    interface="grpc",
    concurrency="threads",
    command=_command,
    requires=GRPCIO,
    knobs={"workers": 1, "threads": 100},
    slots=one_per_thread,
    python=(3, 10),
    script=processes.pooled,
)


def serve(options: Namespace) -> None:
    """Serve until SIGTERM or SIGINT, let calls in flight end, and leave."""
    # Before there are threads, which inherit it: the signal is for the thread that waits for it.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    from concurrent.futures import ThreadPoolExecutor

    import grpc

    server = grpc.server(
        ThreadPoolExecutor(options.threads), options=(("grpc.so_reuseport", int(shares_port(options))),)
    )
    load(options.app)(server)
    server.add_insecure_port("%s:%d" % (options.host, options.port))
    server.start()
    signal.sigwait(STOPS)
    server.stop(GRACE_S).wait()
    leave()


def main() -> None:
    """Run the program."""
    options = with_threads(arguments(PROGRAM)).parse_args()
    serve_in_each(options, lambda: serve(options))


if __name__ == "__main__":
    main()
