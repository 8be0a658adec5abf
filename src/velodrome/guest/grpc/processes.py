"""gRPC servers as programs: their command lines, several processes on one port, and the same as source to paste.

A gRPC library opens its own listening socket, so processes share a port by SO_REUSEPORT: the kernel deals
connections, not calls, to them. With that option a second server on the same port starts silently and gets
half of the connections; so it is used for several processes only, after the port was seen free of anyone.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from argparse import ArgumentParser, Namespace
from typing import Callable, List

from velodrome.guest.stack import Launch, Process, Written
from velodrome.guest.workers import STOPS, with_workers

GRACE_S = 2
"""Seconds that calls in flight get when the server gets the signal to stop."""


def command(module: str, launch: Launch, *more: str) -> Process:
    """Return the command line of a program; every knob is an option of the same name."""
    options = ["--app=%s" % launch.app, "--host=%s" % launch.host, "--port=%d" % launch.port]
    knobs = ["--%s=%s" % (knob, launch.text(knob)) for knob in sorted(launch.knobs)]
    return Process(("-m", module, *options, *knobs, *more))


def serve_in_each(options: Namespace, serve: Callable[[], None]) -> None:
    """Run `serve` in each of the workers, forked before anything of gRPC exists, till a stop signal.

    Raises OSError if somebody else has the port.
    """
    with _port_for(options.host, options.port, options.workers):
        with_workers(options.workers, serve)


def shares_port(options: Namespace) -> bool:
    """Whether the library has to listen with SO_REUSEPORT."""
    return int(options.workers) > 1


def _port_for(host: str, port: int, workers: int) -> socket.socket:
    """Return a socket that keeps the port from others, and listens on nothing.

    A socket bound without SO_REUSEPORT is refused where anybody listens; a socket bound with it then holds the port for
    workers, which bind it once more. For a single process the library's own refusal is enough.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    holder = socket.socket(family, socket.SOCK_STREAM)
    if workers == 1:
        return holder
    with socket.socket(family, socket.SOCK_STREAM) as alone:
        alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        alone.bind((host, port))
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    holder.bind((host, port))
    return holder


def with_threads(parser: ArgumentParser) -> ArgumentParser:
    """Add the size of a pool of threads to a command line."""
    parser.add_argument("--threads", type=int, required=True)
    return parser


def leave() -> None:
    """End the process at once: the interpreter's own way out waits for pooled threads, whose calls may take long."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


async def until_signalled() -> None:
    """Wait on the running loop for SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    for signum in STOPS:
        asyncio.get_running_loop().add_signal_handler(signum, stopping.set)
    await stopping.wait()


def pooled(launch: Launch, app: Written) -> str:
    """Return the program of a server with a pool of threads."""
    imports = ["from concurrent.futures import ThreadPoolExecutor", "", "import grpc", app.imports]
    return "\n".join([*_imports(launch), *imports, "", *_processes(launch), *_pool(launch, app)])


def pooled_greenlets(launch: Launch, app: Written) -> str:
    """Return the program of a server whose pool is of greenlets."""
    first = ["from gevent import monkey", "", "monkey.patch_all()"]
    imports = ["from concurrent.futures import ThreadPoolExecutor", "", "import grpc"]
    imports += ["from grpc.experimental import gevent as grpc_gevent", app.imports, ""]
    mode = ["grpc_gevent.init_gevent()"]
    return "\n".join([*first, *_imports(launch), *imports, *_processes(launch), *mode, *_pool(launch, app)])


def on_loop(launch: Launch, app: Written) -> str:
    """Return the program of a server on an event loop."""
    loop = launch.text("loop")
    own = ["import uvloop"] if loop == "uvloop" else []
    serve = [
        "async def main():",
        "    server = aio.server(%s)" % _options(launch),
        "    " + app.expression,
        '    server.add_insecure_port("%s:%d")' % (launch.host, launch.port),
        "    await server.start()",
        "    await server.wait_for_termination()",
    ]
    imports = [*_imports(launch), "import asyncio", "", *own, "from grpc import aio", app.imports]
    return "\n".join([*imports, "", "", *serve, "", "", *_processes(launch), "%s.run(main())" % loop])


def _imports(launch: Launch) -> List[str]:
    return ["import os"] if launch.number("workers") > 1 else []


def _processes(launch: Launch) -> List[str]:
    """Return what forks, before anything of gRPC runs."""
    more = launch.number("workers") - 1
    return ["for _ in range(%d):" % more, "    if not os.fork():", "        break"] if more else []


def _options(launch: Launch) -> str:
    # On by default: a second server on the port would start without a word and get half of the connections.
    return 'options=[("grpc.so_reuseport", %d)]' % (launch.number("workers") > 1)


def _pool(launch: Launch, app: Written) -> List[str]:
    given = "ThreadPoolExecutor(%s), %s" % (launch.text("threads"), _options(launch))
    return [
        "server = grpc.server(%s)" % given,
        app.expression,
        'server.add_insecure_port("%s:%d")' % (launch.host, launch.port),
        "server.start()",
        "server.wait_for_termination()",
    ]
