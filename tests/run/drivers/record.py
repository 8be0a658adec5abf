"""Record what the tools of this machine print, good and bad: `python -m tests.run.drivers.record [TOOL]`.

Against servers of the standard library, so that nothing else has to be installed; calls over gRPC against the
port of a server of `helloworld.proto` named by GRPC_PORT.
"""

import contextlib
import dataclasses
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from tests.run.drivers import samples

from velodrome.model.load import Closed, Load, Open
from velodrome.run import calls
from velodrome.run.calls import GrpcCall
from velodrome.run.drivers import ab, ghz, h2load, oha, wrk
from velodrome.run.drivers.driver import Target
from velodrome.run.drivers.foreign import Dialect, spawn

DIALECTS: dict[str, Dialect] = {module.TOOL.name: module.DIALECT for module in (ab, ghz, h2load, oha, wrk)}
KEEPS = Path(__file__).with_name("keeps_alive.py")
SHORT = Load(Closed(4), duration_s=1, requests=200, timeout_s=2)
TIMED = dataclasses.replace(SHORT, requests=None)
RATE = dataclasses.replace(TIMED, pace=Open(100, connections=4))
CALL = "/helloworld.Greeter/SayHello"


@contextlib.contextmanager
def server(*arguments: object) -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, KEEPS, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
        process.kill()


def nobody() -> str:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}/"


def record(tool: str, case: str, load: Load, url: str) -> None:
    dialect = DIALECTS[tool]
    if tool == "h2load" and load.requests is None and case != "late":
        load = dataclasses.replace(load, duration_s=0.05)  # it tells every request
    call = GrpcCall(urlsplit(url).path, "unary", (calls.hello_request("world"),)) if "grpc" in case else None
    words = dialect.words(load, Target(url, call=call))
    path = dialect.tool.find().path
    run = spawn((path, *words.arguments), span_s=10, files=words.files)
    samples.keep(f"{tool}/{case}", run)
    print(f"{tool}/{case}: status {run.status}")


def over_http(tool: str) -> None:
    with server() as url:
        if tool != "wrk":
            record(tool, "count", SHORT, url)
        record(tool, "timed", TIMED, url)
        if tool in ("ab", "oha"):
            record(tool, "closing", dataclasses.replace(SHORT, keepalive=False), url)
        if tool in ("oha", "h2load"):
            record(tool, "rate", RATE, url)
    with server("--fail", 3) as url:
        record(tool, "some-failed", TIMED, url)
    with server("--fail", 1) as url:
        record(tool, "all-failed", TIMED, url)
    with server("--delay", 300) as url:
        few = dataclasses.replace(TIMED, timeout_s=0.1)
        record(tool, "late", few, url)
    with server("--delay", 5000) as url:
        record(tool, "nothing", TIMED, url)
    with server("--hang-up", 2) as url:
        record(tool, "hung-up", TIMED, url)
    record(tool, "refused", TIMED, nobody())


def over_grpc(tool: str, port: str) -> None:
    url = f"grpc://127.0.0.1:{port}{CALL}"
    few = dataclasses.replace(SHORT, pace=Closed(2), streams=4, requests=40)
    record(tool, "grpc-count", few, url)
    record(tool, "grpc-timed", dataclasses.replace(few, requests=None, duration_s=0.3), url)
    record(tool, "grpc-unknown", few, url.replace("SayHello", "SayNothing"))
    record(tool, "grpc-refused", few, nobody().replace("http", "grpc").rstrip("/") + CALL)
    if tool == "ghz":
        record(tool, "grpc-late", dataclasses.replace(few, timeout_s=0.001), url)
        record(tool, "grpc-rate", dataclasses.replace(RATE, duration_s=0.3), url)


def main() -> None:
    port = os.environ.get("GRPC_PORT")
    for tool in sys.argv[1:] or DIALECTS:
        if tool != "ghz":
            over_http(tool)
        if tool in ("ghz", "h2load") and port:
            over_grpc(tool, port)


if __name__ == "__main__":
    main()
