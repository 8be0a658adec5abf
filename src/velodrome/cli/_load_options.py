"""The options of `velodrome load`, whatever is spoken to the server."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Url = Annotated[
    str,
    typer.Argument(
        help="http://127.0.0.1:8000/path, grpc://127.0.0.1:50051/package.Service/Method, ws://…; https, grpcs, wss; http+unix://"
    ),
]
Connections = Annotated[
    int | None,
    typer.Option(
        "-c",
        "--connections",
        help="Connections; in open loop, the most that may be open at once (50; open loop 1000, gRPC 10).",
    ),
]
Span = Annotated[str | None, typer.Option("-z", "--duration", help="How long: 10s, 500ms, 2m (10s).")]
Requests = Annotated[
    int | None, typer.Option("-n", "--requests", help="How many requests, instead of how long.")
]
Arrivals = Annotated[Literal["constant", "poisson"], typer.Option(help="Spacing of an open loop.")]
Threads = Annotated[int, typer.Option("-t", "--threads", help="Threads of the generator.")]
Keepalive = Annotated[bool, typer.Option("--keepalive/--no-keepalive", help="Use a connection again.")]
Header = Annotated[
    list[str] | None,
    typer.Option("-H", "--header", help="'Name: value', of gRPC metadata; repeatable."),
]
Timeout = Annotated[str, typer.Option(help="An answer later than this is a failure; gRPC: the deadline.")]
Transport = Annotated[Literal["auto", "io_uring", "epoll"], typer.Option()]
Warmup = Annotated[str, typer.Option(help="Load this long before measuring.")]
Drain = Annotated[str, typer.Option(help="Wait this long for answers at the end.")]
Seed = Annotated[int, typer.Option(help="Draws Poisson arrivals, and {{random}}.")]
Idle = Annotated[
    int, typer.Option("--idle", min=0, help="Hold so many more connections open, on which nothing is sent.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the velodrome/load/1 document.")]
Hdr = Annotated[Path | None, typer.Option("--hdr", help="Write both histograms as an HdrHistogram log.")]
AllowTarget = Annotated[list[str] | None, typer.Option(help="Permit load on this host; repeatable.")]
Insecure = Annotated[bool, typer.Option("--insecure", help="https, grpcs: accept any certificate.")]
CaCert = Annotated[
    Path | None,
    typer.Option("--cacert", help="https, grpcs: trust this authority; else those the system trusts."),
]

Method = Annotated[str | None, typer.Option("--method", "-X", help="HTTP: the method (GET).")]
Body = Annotated[str | None, typer.Option(help="HTTP: body of the request, or @file.")]
ExpectStatus = Annotated[int | None, typer.Option(help="HTTP: the right status (any 2xx).")]
ExpectBody = Annotated[str | None, typer.Option(help="HTTP: the right body, or @file; compared whole.")]
