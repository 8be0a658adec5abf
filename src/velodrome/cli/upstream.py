"""`velodrome upstream`: a third party that answers after a known time, to call from a service under test."""

import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Annotated, TypeVar

import typer

Read = TypeVar("Read")
NOTICED_S = 0.2
"""How often it is looked whether somebody has interrupted."""


def _read(option: str, reader: Callable[..., Read], *arguments: object) -> Read:
    try:
        return reader(*arguments)
    except ValueError as error:
        from velodrome.model.errors import UsageError  # noqa: PLC0415

        raise UsageError(f"{option}: {error}") from error


def _address(host: str, stopped: threading.Event) -> str:
    """Return the address of a host, looked up by a thread: a lookup cannot be interrupted, and waiting for it can.

    The name itself where there is none, or where only IPv6 has it: then the engine looks.
    """
    found: list[str] = []

    def look() -> None:
        with suppress(OSError):
            found.append(str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0]))

    looking = threading.Thread(target=look, name="lookup", daemon=True)
    looking.start()
    while looking.is_alive() and not stopped.is_set():
        looking.join(NOTICED_S)
    return found[0] if found and ":" not in found[0] else host


def command(
    latency: Annotated[
        str,
        typer.Option(
            help="Latency of each response: 200ms, lognormal(50ms,0.4), uniform(10ms,20ms), exponential(50ms), or a "
            "file with one latency a line."
        ),
    ] = "0ms",
    errors: Annotated[str, typer.Option(help="Share of responses with status 500: 1% or 0.01.")] = "0%",
    stall: Annotated[
        str | None, typer.Option(help="Stop responding at intervals: 1s/10s is one second in every ten.")
    ] = None,
    body: Annotated[
        str,
        typer.Option(help="Body of each response: a size in bytes, text such as '{\"ok\": true}', or @file."),
    ] = "64",
    kind: Annotated[
        str | None,
        typer.Option("--type", help="Content type of the body (JSON, HTML or text, by its content)."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one and prints it.")] = 0,
    threads: Annotated[int, typer.Option("-t", "--threads", help="Threads of the simulator.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of latencies and errors.")] = 1,
) -> None:
    """Respond to every request after LATENCY until interrupted.

    A request can set its own: GET /?velodrome-latency=75ms.
    """
    from velodrome.model.app import ThirdParty  # noqa: PLC0415
    from velodrome.plan import surroundings  # noqa: PLC0415
    from velodrome.run import third_party  # noqa: PLC0415

    size, content = _read("--body", surroundings.content, body)
    third = ThirdParty(
        "",
        latency,
        _read("--errors", surroundings.share, errors),
        None if stall is None else _read("--stall", surroundings.stall, stall),
        content,
        size,
        _read("--type", surroundings.content_type, kind, content),
    )
    spec = {"host": host, "port": port, **third_party.answering(third), "threads": threads, "seed": seed}
    stop_requested = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stop_requested.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # by nohup
            signal.signal(number, stop)
    spec["host"] = _address(host, stop_requested)
    if stop_requested.is_set():
        return
    with third_party.serve_here(spec) as upstream:
        print(f"http://{host}:{upstream.port}", flush=True)
        # A signal that comes right before a wait without an end is noticed only when the next signal comes.
        while not stop_requested.is_set():
            time.sleep(NOTICED_S)
        print(upstream.stop(), file=sys.stderr)


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("upstream")(command)
