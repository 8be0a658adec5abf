"""As `called.py`, for interfaces that serve gRPC: their own library serves the handler, and its client calls it.

A status of gRPC is reported as the HTTP status that it stands for.
"""

import asyncio
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from velodrome.guest.grpc.greeter import NAME, greeting, method_of, uploads
from velodrome.guest.recipe import Recipe, Stream, filler

HTTP = {0: 200, 3: 400, 13: 500, 14: 502}


def beside(name: str) -> ModuleType:
    """Return the module of a file by its path from here: nothing of tests is on the path of an environment."""
    file = Path(__file__).parent / name
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


client = beside("../grpc/client.py")


@contextmanager
def blocking_server(add: Any) -> Iterator[int]:
    import grpc  # noqa: PLC0415 - only in its environment

    server = grpc.server(ThreadPoolExecutor(8))
    add(server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield port
    server.stop(None).wait()


@contextmanager
def on_a_loop(serve: Callable[[Any, "asyncio.Future[int]"], Any], app: Any) -> Iterator[int]:
    """Serve on the loop of a thread of its own; the process is forked for one case and ends with it."""
    listening, found = threading.Event(), []

    async def run() -> None:
        ports = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve(app, ports))
        found.append(await ports)
        listening.set()
        await serving

    threading.Thread(target=asyncio.run, args=(run(),), daemon=True).start()
    assert listening.wait(10), "it does not listen"
    yield found[0]


async def serve_aio(add: Any, port: "asyncio.Future[int]") -> None:
    from grpc import aio  # noqa: PLC0415 - only in its environment

    server = aio.server()
    add(server)
    port.set_result(server.add_insecure_port("127.0.0.1:0"))
    await server.start()
    await server.wait_for_termination()


async def serve_grpclib(service: Any, port: "asyncio.Future[int]") -> None:
    from grpclib.server import Server  # noqa: PLC0415 - only in its environment

    server = Server([service])
    await server.start("127.0.0.1", 0)
    port.set_result(server._server.sockets[0].getsockname()[1])
    await server.wait_closed()


def caller(serving: Callable[[Any], Any]) -> Callable[[Any, Recipe, bytes], tuple[int, bytes]]:
    def call(app: Any, recipe: Recipe, upload: bytes) -> tuple[int, bytes]:
        last = recipe.steps[-1]
        method = method_of(recipe)
        bodies = [len(body) for body in uploads(recipe)]
        if len(upload) != recipe.upload_bytes:
            bodies = [len(upload)]
        with serving(app) as port:
            answer = client.answer(
                {
                    "address": f"127.0.0.1:{port}",
                    "method": method.name,
                    "bodies": bodies,
                    "name": NAME,
                    "sleep_millisecond": 0,
                    "each": last.chunks if isinstance(last, Stream) else 1,
                }
            )
        assert set(answer["messages"]) <= {greeting(NAME)}, answer
        assert answer["right"], answer
        return HTTP[answer["code"]], b"".join(filler(length) for length in answer["bodies"])

    return call


def main() -> None:
    called = beside("called.py")
    called.CALLERS.update(
        {
            "grpc": caller(blocking_server),
            "grpc_aio": caller(lambda app: on_a_loop(serve_aio, app)),
            "grpclib": caller(lambda app: on_a_loop(serve_grpclib, app)),
        }
    )
    called.main()


if __name__ == "__main__":
    assert sys.argv[1:]
    main()
