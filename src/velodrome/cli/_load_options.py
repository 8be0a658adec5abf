"""The options of `velodrome load`, whatever is spoken to the server."""

from velodrome.cli._declared import Annotated, Argument, Option

Url = Annotated[
    str,
    Argument(
        help="http://127.0.0.1:8000/path, grpc://127.0.0.1:50051/package.Service/Method, ws://…; https, grpcs, wss; http+unix://"
    ),
]
Connections = Annotated[
    str | None,
    Option(
        "-c",
        "--connections",
        help="Connections; in open loop, the most that may be open at once (50; open loop 1000, gRPC 10). auto: "
        "search from how many on throughput rises no more.",
    ),
]
Span = Annotated[str | None, Option("-z", "--duration", help="How long: 10s, 500ms, 2m (10s).")]
Requests = Annotated[int | None, Option("-n", "--requests", help="How many requests, instead of how long.")]
Arrivals = Annotated[str, Option(one_of=("constant", "poisson"), help="Spacing of an open loop.")]
Threads = Annotated[int, Option("-t", "--threads", help="Threads of the generator.")]
Keepalive = Annotated[bool, Option("--keepalive/--no-keepalive", help="Use a connection again.")]
Header = Annotated[
    list[str] | None,
    Option("-H", "--header", help="'Name: value', of gRPC metadata; repeatable."),
]
HeaderFile = Annotated[
    list[str] | None,
    Option("--header-file", metavar="PATH", help="File of such headers, one a line; repeatable."),
]
Secret = Annotated[
    list[str] | None,
    Option(
        "--secret",
        metavar="NAME",
        help="Mask what stands under this name, however short: a header, a parameter, a field; repeatable.",
    ),
]
Timeout = Annotated[str, Option(help="An answer later than this is a failure; gRPC: the deadline.")]
Transport = Annotated[str, Option(one_of=("auto", "io_uring", "epoll"))]
Warmup = Annotated[str, Option(help="Load this long before measuring.")]
Drain = Annotated[str, Option(help="Wait this long for answers at the end.")]
Seed = Annotated[int, Option(help="Draws Poisson arrivals, and {{random}}.")]
Idle = Annotated[
    int, Option("--idle", min=0, help="Hold so many more connections open, on which nothing is sent.")
]
AsJson = Annotated[bool, Option("--json", help="Print the velodrome/load/1 document.")]
AllowTarget = Annotated[list[str] | None, Option(help="Permit load on this host; repeatable.")]
Insecure = Annotated[bool, Option("--insecure", help="https, grpcs: accept any certificate.")]
CaCert = Annotated[
    str | None,
    Option(
        "--cacert", metavar="PATH", help="https, grpcs: trust this authority; else those the system trusts."
    ),
]

Method = Annotated[str | None, Option("--method", "-X", help="HTTP: the method (GET; with --body POST).")]
Body = Annotated[
    str | None, Option(help="HTTP: body of the request, or @file; sent by POST unless -X says else.")
]
ExpectStatus = Annotated[int | None, Option(help="HTTP: the right status (any 2xx).")]
ExpectBody = Annotated[str | None, Option(help="HTTP: the right body, or @file; compared whole.")]
