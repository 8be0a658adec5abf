"""Programs that serve a servicer as the stacks of grpcio do, to be shown: lines of a file."""

from __future__ import annotations

from typing import List

from velodrome.guest.stack import Launch, Written


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


def on_loop(loop: str, launch: Launch, app: Written) -> str:
    """Return the program of a server on an event loop."""
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
    return 'options=[("grpc.so_reuseport", 1)]' if launch.number("workers") > 1 else ""


def _pool(launch: Launch, app: Written) -> List[str]:
    given = ", ".join(filter(None, ("ThreadPoolExecutor(%s)" % launch.text("threads"), _options(launch))))
    return [
        "server = grpc.server(%s)" % given,
        app.expression,
        'server.add_insecure_port("%s:%d")' % (launch.host, launch.port),
        "server.start()",
        "server.wait_for_termination()",
    ]
