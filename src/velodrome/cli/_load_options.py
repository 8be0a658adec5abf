"""The options of `velodrome load`, whatever is spoken to the server."""

from __future__ import annotations

from velodrome.cli._quick import Annotated, Argument, Option
from velodrome.model import amounts
from velodrome.model.errors import UsageError
from velodrome.plan import option_text
from velodrome.plan.option_text import read_text
from velodrome.run.engine import BOUNDS, check_whole

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


GROUPS = {
    "Load": (
        *(
            "connections",
            "span",
            "requests",
            "rate",
            "step",
            "every",
            "ramp",
            "arrivals",
            "seed",
            "warmup",
            "drain",
            "timeout",
        ),
        *("idle_connections", "allow_target"),
    ),
    "HTTP": (
        *(
            "method",
            "body",
            "header",
            "header_file",
            "requests_file",
            "trust",
            "template",
            "cookies",
            "http2",
            "expect_status",
        ),
        *("expect_body", "expect_contains"),
    ),
    "gRPC": ("streams", "call", "proto", "include", "data", "messages", "expect_data"),
    "WebSockets": ("ws_mode", "message", "ws_at_once"),
    "Connections and TLS": (
        *("keepalive", "unix", "connect_to", "sni", "alpn", "cert", "key", "tls_min", "insecure", "cacert"),
    ),
    "Load generator": ("threads", "transport", "agents", "keys"),
    "Results": ("as_json", "hdr", "csv", "percentiles", "fail_if", "secret"),
}
"""Parameters of the command by the heading under which its help shows them."""


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
        help="Number of connections; of an open loop, the maximum (50; open loop 1000, gRPC 10). auto: find the number "
        "at which throughput stops rising.",
    ),
]
Span = Annotated[str | None, Option("-z", "--duration", help="Duration: 10s, 500ms, 2m (10s).")]
Requests = Annotated[
    int | None, Option("-n", "--requests", help="Number of requests, instead of a duration.")
]
Arrivals = Annotated[
    str | None,
    Option(
        one_of=("constant", "poisson"),
        help="Arrival process of an open loop: evenly spaced, or as of independent users (constant; -R auto: poisson).",
    ),
]
Threads = Annotated[int, Option("-t", "--threads", help="Threads of the load generator.")]
Keepalive = Annotated[bool, Option("--keepalive/--no-keepalive", help="Reuse connections.")]
Header = Annotated[
    list[str] | None,
    Option("-H", "--header", help="Header, or gRPC metadata: 'Name: value'; repeatable."),
]
HeaderFile = Annotated[
    list[str] | None,
    Option("--header-file", metavar="PATH", help="File of such headers, one per line; repeatable."),
]
Secret = Annotated[
    list[str] | None,
    Option(
        "--secret",
        metavar="NAME",
        help="Mask the value of this header, parameter or field, however short; repeatable.",
    ),
]
Timeout = Annotated[str, Option(help="Count a response later than this as an error; gRPC: the deadline.")]
Agents = Annotated[
    str | None,
    Option(
        metavar="ADDRESS|N|auto",
        help="Carry the load by the agents of a coordinator (tls://host:8786), or by N agents of this machine; "
        "auto: as many as the rate takes, by a look of a second.",
    ),
]
Keys = Annotated[
    str | None, Option(metavar="FOLDER", help="The cluster's certificates, of velodrome cluster keys.")
]
Transport = Annotated[
    str, Option(one_of=("auto", "io_uring", "epoll"), help="How the engine talks to the kernel.")
]
Warmup = Annotated[str, Option(help="Load this long before measuring.")]
Drain = Annotated[str, Option(help="Wait this long for responses at the end.")]
Seed = Annotated[int, Option(help="Seed of Poisson arrivals and {{random}}.")]
Idle = Annotated[int, Option("--idle", min=0, help="Hold this many idle connections open as well.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON document (schema velodrome/load/1).")]
AllowTarget = Annotated[
    list[str] | None, Option(help="Allow load on this host, not only on this machine; repeatable.")
]
Insecure = Annotated[bool, Option("--insecure", help="Accept any certificate.")]
CaCert = Annotated[
    str | None,
    Option("--cacert", metavar="PATH", help="Trust this certificate authority (those of the system)."),
]

Method = Annotated[str | None, Option("--method", "-X", help="Method (GET; with --body POST).")]
Body = Annotated[
    str | None, Option(help="Body of the request, or @file; sent by POST unless -X names another method.")
]
ExpectStatus = Annotated[int | None, Option(help="Expected status (any 2xx).")]
ExpectBody = Annotated[str | None, Option(help="Expected body, or @file; compared as a whole.")]


Unix = Annotated[
    str | None,
    Option(metavar="PATH", help="Connect to this Unix socket; or write http+unix://%2Frun%2Fapp.sock/path."),
]
ConnectTo = Annotated[
    list[str] | None,
    Option(help="Connect elsewhere, as curl does: HOST:PORT:ADDRESS:PORT; repeatable."),
]
Http2 = Annotated[
    bool, Option("--http2", help="Use HTTP/2, over http:// with prior knowledge; -m sets the streams.")
]
Sni = Annotated[str | None, Option(help="Server name to request, which the certificate must have.")]
Alpn = Annotated[
    list[str] | None,
    Option(help="Protocol to offer (the one in use); repeatable; 'none' offers nothing."),
]
Cert = Annotated[
    str | None,
    Option(metavar="PATH", help="Client certificate (PEM)."),
]
Key = Annotated[
    str | None, Option(metavar="PATH", help="Key of the client certificate (PEM; in the same file).")
]
TlsMin = Annotated[str | None, Option(one_of=("1.2", "1.3"), help="Minimum version (1.2).")]


WHOLE = {
    "connections": "-c",
    "streams": "-m",
    "requests": "-n",
    "threads": "-t",
    "seed": "--seed",
    "expect_status": "--expect-status",
}
"""Whole numbers by the field of the load, and the option that sets it."""


def check_numbers(**given: int | None) -> None:
    """Raise BadOptionError for a whole number that the engine does not take, by the name of its option."""
    for field, value in given.items():
        check_whole(WHOLE[field], value, *BOUNDS[field])


def check_idle(count: int) -> None:
    """Raise BadOptionError for more idle connections than there can be."""
    check_whole("--idle", count, 0, BOUNDS["connections"][1])


def connection_spec(
    unix: str | None, connect_to: Sequence[str] | None, idle: int, url: str
) -> dict[str, Any]:
    """Return where connections go.

    Raises UsageError for idle connections, which go to the URL's host only, and NeedlessOptionError for `--connect-to`
    that is about other hosts.
    """
    if connect_to and unix is None and "+unix://" not in url.lower():
        _refuse_unmatched(connect_to, url)
    elsewhere = unix is not None or connect_to or "+unix://" in url.lower()
    if idle and elsewhere:
        raise UsageError("--idle holds connections to the host of the URL: leave out --unix and --connect-to")
    return {"unix": unix, "connect_to": list(connect_to or ())}


def _refuse_unmatched(rules: Sequence[str], url: str) -> None:
    """Raise NeedlessOptionError where no rule is about the host and port of a URL."""
    import re  # noqa: PLC0415 - most loads have no such rule
    from urllib.parse import urlsplit  # noqa: PLC0415

    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or (443 if _is_secure(url) else 80)
    except ValueError:
        return  # the engine says what is wrong with it
    for rule in rules:
        match = re.fullmatch(r"(\[[^\]]*\]|[^:]*):([^:]*):(?:\[[^\]]*\]|[^:]*):[^:]*", rule)
        if match is None:
            return  # so too
        if match[1].strip("[]").lower() in ("", host) and match[2] in ("", str(port)):
            return
    from velodrome.model.errors import NeedlessOptionError  # noqa: PLC0415

    raise NeedlessOptionError(["--connect-to"], f"{', '.join(rules)} is not about {host}:{port} of the URL")


def tls(
    url: str,
    sni: str | None,
    alpn: Sequence[str] | None,
    cert: str | None,
    key: str | None,
    least: str | None,
    trusting: Mapping[str, object],
) -> dict[str, Any]:
    """Return what the engine takes as `tls`. Raises UsageError where none is spoken, and for protocols beside none.

    `trusting` are options that say which certificates are trusted.
    """
    given = {"--sni": sni, "--alpn": alpn, "--cert": cert, "--key": key, "--tls-min": least, **trusting}
    for option, value in given.items():
        if value and not _is_secure(url):
            raise UsageError(f"{option} is about TLS, and {url} has none: write https://, grpcs:// or wss://")
    if alpn and "none" in alpn and len(alpn) > 1:
        raise UsageError("--alpn none offers nothing: leave out the others")
    return {
        "sni": sni,
        "alpn": None if not alpn else [name for name in alpn if name != "none"],
        "cert": cert,
        "key": key,
        "minimum": least or "1.2",
    }


def _is_secure(url: str) -> bool:
    scheme = url.partition("://")[0].lower().removesuffix("+unix")
    return scheme in ("https", "grpcs", "wss")


Streams = Annotated[
    int | None,
    Option(
        "-m", "--streams", help="Concurrent streams of each connection, gRPC and HTTP/2 (1; open loop 100)."
    ),
]
Call = Annotated[str | None, Option(help="package.Service/Method, if it is not in the URL.")]
Proto = Annotated[
    list[str] | None,
    Option(
        metavar="PATH",
        help="File that describes the call (the server, by reflection); repeatable.",
    ),
]
Include = Annotated[
    list[str] | None,
    Option("-I", "--include", metavar="PATH", help="Folder of imports; repeatable."),
]
Data = Annotated[
    str | None,
    Option(
        help="Message as JSON, or @file; a list if a call sends several. {{n}}, {{i}} and {{random}} in its strings "
        "become the number of the call, that of the message in it, and a random number."
    ),
]
Messages = Annotated[int | None, Option(min=1, help="Send the message so many times in each call.")]
ExpectData = Annotated[
    str | None,
    Option(help="Expected response as JSON, or @file; of several messages a list, or what each of them is."),
]


MOST_MESSAGES = 1_000_000
"""In a call, as the engine has it."""


class GrpcOptions:
    """The requests over gRPC, as the options say; None: not given."""

    def __init__(
        self,
        streams: int | None,
        call: str | None,
        proto: Sequence[str] | None,
        include: Sequence[str] | None,
        data: str | None,
        messages: int | None,
        expect_data: str | None,
    ) -> None:
        self.streams, self.call, self.messages = streams, call, messages
        self.proto, self.include = proto, include
        self.data, self.expect_data = data, expect_data

    @property
    def given(self) -> dict[str, object]:
        """The options that say nothing to another protocol."""
        return {
            "--streams": self.streams,
            "--call": self.call,
            "--proto": self.proto,
            "--include": self.include,
            "--data": self.data,
            "--messages": self.messages,
            "--expect-data": self.expect_data,
        }

    def spec(self) -> dict[str, Any]:
        """Return what the engine takes as `grpc`. Raises UsageError for a file that cannot be read."""
        check_whole("--messages", self.messages, 1, MOST_MESSAGES)
        return {
            "call": self.call,
            "proto": list(self.proto or ()),
            "include": list(self.include or ()),
            "data": read_text("--data", self.data),
            "messages": self.messages,
            "expect_data": read_text("--expect-data", self.expect_data),
        }


RequestsFile = Annotated[
    str | None,
    Option(
        "--requests-file",
        metavar="PATH",
        help="File of requests with weights (TOML, JSON): name, weight, method, path, headers, body, expect-….",
    ),
]
Trust = Annotated[bool, Option("--trust", help="Allow the file of requests to name files elsewhere.")]
Template = Annotated[
    bool,
    Option(
        "--template/--no-template",
        help="Fill in {{n}}, {{random 1..100}}, {{hex 16}}, {{uuid}}, {{pick a|b}} in paths, headers and bodies.",
    ),
]
Cookies = Annotated[
    bool,
    Option("--cookies", help="Keep the cookies that the server sets, for each connection."),
]
ExpectContains = Annotated[str | None, Option(help="Text that the response body must contain.")]


class HttpOptions:
    """The requests over HTTP, as the options say; None: not given."""

    def __init__(
        self,
        method: str | None,
        body: str | None,
        expect_status: int | None,
        expect_body: str | None,
        expect_contains: str | None,
        file: str | None,
        cookies: bool,
        http2: bool,
        headers: Sequence[Sequence[str]] = (),
        trust: bool = False,
    ) -> None:
        """`headers`: those of the whole load, name and value each; `trust`: what the file names is allowed."""
        self.method, self.body, self.file = method, body, file
        self.expect_status, self.expect_body = expect_status, expect_body
        self.expect_contains = expect_contains
        self.cookies, self.http2, self.trust = cookies, http2, trust
        self.names = [name for name, _ in headers]

    @property
    def given(self) -> dict[str, object]:
        """The options that say nothing to another protocol."""
        return self._of_each | {
            "--expect-status": self.expect_status,
            "--requests-file": self.file,
            "--trust": self.trust,
            "--cookies": self.cookies,
            "--http2": self.http2,
        }

    @property
    def _of_each(self) -> dict[str, object]:
        return {
            "--method": self.method,
            "--body": self.body,
            "--expect-body": self.expect_body,
            "--expect-contains": self.expect_contains,
        }

    def spec(self, *, template: bool) -> dict[str, Any]:
        """Return what the engine takes of it. Raises UsageError for what the file of requests says for each of them."""
        for option, value in self._of_each.items():
            if self.file is not None and value is not None:
                raise UsageError(f"{option}: --requests-file sets it for each request; write it there")
        return {
            # As curl does: a body that nobody reads is hardly meant.
            "method": self.method or ("GET" if self.body is None else "POST"),
            "expect_status": self.expect_status,
            "expect_contains": self.expect_contains,
            "mix": _mix(self.file, self.names, self.trust),
            "template": template,
            "cookies": self.cookies,
            "http2": self.http2,
        }


def _mix(path: str | None, names: Sequence[str], trust: bool) -> list[dict[str, Any]]:
    """Return what the engine takes as `mix`; nothing without a file. `names` are of headers that the load gives.

    Raises RequestsFileError, UntrustedError, WithheldHeaderError.
    """
    if path is None:
        return []
    # What reads such a file takes longer to import than all else before the first request.
    from pathlib import Path  # noqa: PLC0415

    from velodrome.cli import _app_options as trusting  # noqa: PLC0415
    from velodrome.model.app import register_secrets, whole, without_marks  # noqa: PLC0415
    from velodrome.plan.requests import file  # noqa: PLC0415
    from velodrome.run.drivers import load_document  # noqa: PLC0415

    # Whether braces stand for themselves, and for what they may stand, is checked by the engine.
    found = file.read(Path(path), default_path="", templates=False, see=trusting.trust(trust).see)
    register_secrets(found)
    return load_document.mix_document(whole([without_marks(request, names) for request in found]))


SCHEMES = ("ws", "wss")
MOST_AT_ONCE, MOST_MESSAGE_BYTES = 1_000_000, 2**30
"""As the engine has them."""

WsMode = Annotated[
    str | None,
    Option(
        one_of=("echo", "connect", "broadcast"),
        help="Measure a message until it is echoed, a connection until it is open, or a message to all (echo).",
    ),
]
Message = Annotated[str | None, Option(help="Message, @file, or its size in bytes; {id} becomes a number.")]
WsAtOnce = Annotated[int | None, Option(help="broadcast: messages in flight at once (1; open loop 1000).")]


class Conversation:
    """The `websocket` field of a load's specification, and the message that goes as its body."""

    def __init__(self, spec: dict[str, Any], message: bytes) -> None:
        self.spec, self.message = spec, message


def conversation(
    url: str, mode: str | None, message: str | None, at_once: int | None, body: str | None
) -> Conversation | None:
    """Return what is sent over WebSockets, or None for another protocol.

    Raises UsageError for options that do not go with the URL.
    """
    if url.partition("://")[0].lower().removesuffix("+unix") not in SCHEMES:
        for option, value in (("--ws-mode", mode), ("--message", message), ("--ws-at-once", at_once)):
            if value is not None:
                raise UsageError(f"{option} is for WebSockets: give a URL that begins with ws://")
        return None
    if body is not None:
        raise UsageError("--body is for HTTP: the message of a WebSocket is --message")
    spec: dict[str, Any] = {"mode": mode or "echo"}
    if at_once is not None:
        check_whole("--ws-at-once", at_once, 1, MOST_AT_ONCE)
        spec["at_once"] = at_once
    if message is not None and message.isascii() and message.isdigit():
        check_whole("--message", int(message), 1, MOST_MESSAGE_BYTES)
        spec["message_bytes"] = int(message)
        message = None
    return Conversation(spec, option_text.read_content("--message", message) or b"")


Rate = Annotated[
    str | None,
    Option(
        "-R",
        "-q",
        "--rate",
        help="Open loop: requests per second, whatever the server does; 100..5000 with --step or --ramp, or "
        "pieces with durations: 500:10s,500..4000:60s. auto: find the highest at which no --fail-if is met.",
    ),
]
Step = Annotated[float | None, Option(help="-R A..B: step from A to B by this many requests per second.")]
Every = Annotated[str | None, Option(help="--step: duration of each step (10s).")]
Ramp = Annotated[str | None, Option(help="-R A..B: go from A to B linearly in this time.")]


class Pace:
    """What the engine takes as `rate` or `schedule`; neither: a closed loop."""

    def __init__(self, rate: float | None = None, schedule: Sequence[dict[str, Any]] = ()) -> None:
        self.rate, self.schedule = rate, list(schedule)

    @property
    def is_open(self) -> bool:
        """Whether requests fall due whatever the server does."""
        return self.rate is not None or bool(self.schedule)


def pace(rate: str | None, step: float | None, every: str | None, ramp: str | None) -> Pace:
    """Return when requests are due. Raises UsageError for options that do not make a schedule together."""
    if rate is None and step is None and every is None and ramp is None:
        return Pace()
    # Of a closed loop nothing is to be read.
    from velodrome.plan import option_text  # noqa: PLC0415

    try:
        every_s, ramp_s = _seconds("--every", every), _seconds("--ramp", ramp)
        found = option_text.read_schedule(option_text.OF_OPTIONS, rate, step, every_s, ramp_s)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if isinstance(found, tuple):
        from velodrome.run.drivers import load_document  # noqa: PLC0415

        return Pace(schedule=load_document.schedule_document(found))
    return Pace(rate=found)


def _seconds(option: str, text: str | None) -> float | None:
    try:
        return None if text is None else amounts.seconds(text)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from error


EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - nothing is bound
"""The addresses that stand for all, and loopback of the same kind."""


def of_loopback(url: str) -> tuple[str, str]:
    """Return the URL to load, and a note where it is another than was given (else empty).

    Raises CredentialsInUrlError: here, because the engine, which refuses the same, gets it when others have shown
    the URL already.
    """
    scheme, between, rest = url.partition("://")
    end = min((at for mark in "/?#" if (at := rest.find(mark)) >= 0), default=len(rest))
    if "@" in rest[:end] and not scheme.endswith("+unix"):
        from velodrome.model.errors import CredentialsInUrlError  # noqa: PLC0415 - most URLs have none

        raise CredentialsInUrlError(url)
    host, port = _split_authority(rest[:end])
    if not between or host not in EVERYWHERE:
        return url, ""
    loopback = EVERYWHERE[host]
    note = (
        f"{host.strip('[]')} is where a server listens on every address, and none to connect to: "
        f"{loopback.strip('[]')} was loaded."
    )
    return f"{scheme}://{loopback}{port}{rest[end:]}", note


def _split_authority(authority: str) -> tuple[str, str]:
    """Part `[::]:8000` and `0.0.0.0:8000` before the colon of the port."""
    end = authority.find("]") + 1 or authority.find(":")
    return (authority, "") if end < 0 else (authority[:end], authority[end:])
