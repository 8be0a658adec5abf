"""grpcio's server in gevent compatibility mode: the pool's threads are greenlets.

python -m velodrome.guest.stacks.grpc_gevent --app MODULE:ATTRIBUTE --port PORT --threads 100 [--workers N]
"""

from __future__ import annotations

from argparse import Namespace

from velodrome.guest.grpc import peers, processes
from velodrome.guest.grpc.processes import GRACE_S, command, leave, serve_in_each, shares_port, with_threads
from velodrome.guest.interface import GRPCIO
from velodrome.guest.stack import Launch, Process, Stack, one_per_thread
from velodrome.guest.workers import STOPS, arguments, load

PROGRAM = "velodrome.guest.stacks.grpc_gevent"


def _command(launch: Launch) -> Process:
    return command(PROGRAM, launch)


stack = Stack(
    name="grpc-gevent",
    title="grpcio · gevent",
    about="grpcio's C core in gevent compatibility mode hands each call to a pool of greenlets "
    "(`threads`: they are what the patched library makes of a pool of threads).",
    interface="grpc",
    concurrency="greenlets",
    command=_command,
    requires=(*GRPCIO, "gevent==26.9.0"),
    knobs={"workers": 1, "threads": 100},
    slots=one_per_thread,
    python=(3, 10),
    script=processes.pooled_greenlets,
)


def serve(options: Namespace, in_mode: bool = True) -> None:
    """Serve until SIGTERM or SIGINT, and let calls in flight end; not `in_mode` it serves nobody."""
    from gevent import monkey

    monkey.patch_all()
    if in_mode:
        peers.enter()
    from concurrent.futures import ThreadPoolExecutor

    import gevent
    import grpc
    from gevent.event import Event

    server = grpc.server(
        ThreadPoolExecutor(options.threads), options=(("grpc.so_reuseport", int(shares_port(options))),)
    )
    load(options.app)(server)
    server.add_insecure_port("%s:%d" % (options.host, options.port))
    server.start()
    stopping = Event()
    for signum in STOPS:
        gevent.signal_handler(signum, stopping.set)
    stopping.wait()
    server.stop(GRACE_S).wait()
    leave()


def main() -> None:
    """Run the program."""
    options = with_threads(arguments(PROGRAM)).parse_args()
    serve_in_each(options, lambda: serve(options))


if __name__ == "__main__":
    main()
