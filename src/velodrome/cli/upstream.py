"""`velodrome upstream`: a third party that answers after a known time, to call from a service under test."""

import signal
import sys
import threading
from types import FrameType
from typing import Annotated, Any

import typer

from velodrome.model import duration
from velodrome.model.errors import UsageError
from velodrome.run.third_party import in_process


def _share(text: str) -> float:
    """Read `1%` or `0.01`."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"--errors: '{text}' is not a share of answers; write 1% or 0.01")
    return value


def _stall(text: str | None) -> dict[str, float] | None:
    """Read `1s/10s`: for one second in every ten."""
    if text is None:
        return None
    lasting, slash, every = text.partition("/")
    try:
        if not slash:
            raise ValueError("no '/'")
        return {"for_s": duration.seconds(lasting), "every_s": duration.seconds(every)}
    except ValueError as error:
        raise UsageError(f"--stall: '{text}' ({error}); write 1s/10s, one second in every ten") from error


def command(
    latency: Annotated[
        str,
        typer.Option(
            help="200ms, lognormal(50ms,0.4), uniform(10ms,20ms), exponential(50ms), or a file with one latency a line."
        ),
    ] = "0ms",
    errors: Annotated[str, typer.Option(help="Share answered with status 500: 1% or 0.01.")] = "0%",
    stall: Annotated[
        str | None, typer.Option(help="1s/10s: answer nothing for one second in every ten.")
    ] = None,
    body: Annotated[int, typer.Option(help="Bytes of each answer.")] = 64,
    host: Annotated[str, typer.Option()] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one and prints it.")] = 0,
    threads: Annotated[int, typer.Option("-t", "--threads")] = 1,
    seed: Annotated[int, typer.Option(help="Draws latencies and errors.")] = 1,
) -> None:
    """Answer every request after LATENCY until interrupted; one request may ask for its own: GET /?latency=75ms."""
    spec: dict[str, Any] = {
        "host": host,
        "port": port,
        "latency": latency,
        "errors": _share(errors),
        "stall": _stall(stall),
        "body": body,
        "threads": threads,
        "seed": seed,
    }
    asked_to_stop = threading.Event()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        asked_to_stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    with in_process.upstream(spec) as upstream:
        print(f"http://{host}:{upstream.port}", flush=True)
        asked_to_stop.wait()
        print(upstream.stop(), file=sys.stderr)


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("upstream")(command)
