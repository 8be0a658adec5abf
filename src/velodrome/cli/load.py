"""`velodrome load`: put load on one URL and tell what came back, honestly."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from velodrome.cli import file_or_text
from velodrome.cli.load_websocket import Mode, said
from velodrome.model import duration
from velodrome.model.errors import UsageError
from velodrome.report import hlog, load_text
from velodrome.run import engine, idle

DEFAULT_SPAN = "10s"


def _span(option: str, text: str) -> float:
    try:
        return duration.seconds(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def _header(text: str) -> list[str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageError(f"-H: '{text}' is not a header; write -H 'Name: value'")
    return [name.strip(), value.strip()]


def command(
    url: Annotated[str, typer.Argument(help="http://127.0.0.1:8000/path")],
    connections: Annotated[
        int | None,
        typer.Option(
            "-c",
            "--connections",
            help="Connections; in open loop, the most that may be open at once (50; open loop 1000).",
        ),
    ] = None,
    span: Annotated[
        str | None, typer.Option("-z", "--duration", help="How long: 10s, 500ms, 2m (10s).")
    ] = None,
    requests: Annotated[
        int | None, typer.Option("-n", "--requests", help="How many requests, instead of how long.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option("-R", "-q", "--rate", help="Open loop: requests per second, whatever the server does."),
    ] = None,
    arrivals: Annotated[
        Literal["constant", "poisson"], typer.Option(help="Spacing of an open loop.")
    ] = "constant",
    threads: Annotated[int, typer.Option("-t", "--threads", help="Threads of the generator.")] = 1,
    keepalive: Annotated[
        bool, typer.Option("--keepalive/--no-keepalive", help="Use a connection again.")
    ] = True,
    method: Annotated[str, typer.Option("--method", "-X")] = "GET",
    header: Annotated[
        list[str] | None, typer.Option("-H", "--header", help="'Name: value'; repeatable.")
    ] = None,
    body: Annotated[str | None, typer.Option(help="Body of the request, or @file.")] = None,
    timeout: Annotated[str, typer.Option(help="An answer later than this is a failure.")] = "10s",
    expect_status: Annotated[int | None, typer.Option(help="The right status (any 2xx).")] = None,
    expect_body: Annotated[str | None, typer.Option(help="The right body, or @file; compared whole.")] = None,
    transport: Annotated[Literal["auto", "io_uring", "epoll"], typer.Option()] = "auto",
    warmup: Annotated[str, typer.Option(help="Load this long before measuring.")] = "0s",
    drain: Annotated[str, typer.Option(help="Wait this long for answers at the end.")] = "2s",
    seed: Annotated[int, typer.Option(help="Draws Poisson arrivals.")] = 1,
    idle_connections: Annotated[
        int,
        typer.Option("--idle", min=0, help="Hold so many more connections open, on which nothing is sent."),
    ] = 0,
    ws_mode: Annotated[
        Mode | None,
        typer.Option(
            help="ws://: a message until it is back, a connection until it stands, or a message to all (echo)."
        ),
    ] = None,
    message: Annotated[
        str | None, typer.Option(help="ws://: the message, @file, or its size in bytes; {id} takes a number.")
    ] = None,
    ws_at_once: Annotated[
        int | None, typer.Option(help="ws://, broadcast: messages on their way at once (1; open loop 1000).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the velodrome/load/1 document.")] = False,
    hdr: Annotated[
        Path | None, typer.Option("--hdr", help="Write both histograms as an HdrHistogram log.")
    ] = None,
    allow_target: Annotated[
        list[str] | None, typer.Option(help="Permit load on this host; repeatable.")
    ] = None,
) -> None:
    """Load URL in closed loop, or with -R in open loop, and report latency from due and from sent."""
    if span is not None and requests is not None:
        raise UsageError("-z and -n exclude each other: give how long, or how many")
    spec: dict[str, Any] = {
        "url": url,
        "connections": connections if connections is not None else (50 if rate is None else 1000),
        "threads": threads,
        "warmup_s": _span("--warmup", warmup),
        "rate": rate,
        "arrivals": arrivals,
        "seed": seed,
        "keepalive": keepalive,
        "method": method,
        "headers": [_header(text) for text in header or ()],
        "timeout_s": _span("--timeout", timeout),
        "drain_s": _span("--drain", drain),
        "expect_status": expect_status,
        "transport": transport,
        "allow_target": list(allow_target or ()),
    }
    if requests is not None:
        spec["requests"] = requests
    else:
        spec["duration_s"] = _span("-z", span or DEFAULT_SPAN)
    payload = file_or_text.read("--body", body) or b""
    conversation = said(url, ws_mode, message, ws_at_once, body)
    if conversation is not None:
        spec["websocket"], payload = conversation.spec, conversation.message
    progress = load_text.Progress(sys.stderr)
    with idle.held(idle_connections, url, allow=allow_target or ()) as held:
        document = engine.load(spec, payload, file_or_text.read("--expect-body", expect_body), progress.event)
        if held is not None:
            document["idle"] = asdict(held.facts())
    progress.end()
    if hdr is not None:
        hlog.write(hdr, document)
    if as_json:
        print(json.dumps(document))
    else:
        load_text.show(document, sys.stdout)
    if document["ok"] == 0:
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add this command to the command line."""
    app.command("load")(command)
