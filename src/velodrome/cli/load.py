"""`velodrome load`: put load on one URL and tell what came back, honestly.

Nothing is imported here that the first request does not need: a generator that is slow to start is started less.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from velodrome.cli import _bottleneck as bottleneck
from velodrome.cli import _call_options as calls
from velodrome.cli import _condition_options as judging
from velodrome.cli import _connection_options as connecting
from velodrome.cli import _load_options as options
from velodrome.cli import _output_options as outputs
from velodrome.cli import _request_options as requests_of
from velodrome.cli import _schedule_options as schedules
from velodrome.cli import _search_options as searching
from velodrome.cli import _websocket_options as websockets
from velodrome.cli._declared import typed
from velodrome.model import duration
from velodrome.model.errors import MisplacedOptionError, UsageError
from velodrome.plan.asked import file_or_text
from velodrome.run import engine

if TYPE_CHECKING:
    import typer

    from velodrome.report.load_live import LoadView
    from velodrome.report.load_text import Progress

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


def _or(given: int | None, default: int) -> int:
    return default if given is None else given


def _only(url: str, wanted: str, given: Mapping[str, object]) -> None:
    """Refuse options that say nothing to this kind of server."""
    for option, value in given.items():
        if value:
            raise MisplacedOptionError(option, url, wanted)


def command(
    url: options.Url,
    connections: options.Connections = None,
    streams: calls.Streams = None,
    span: options.Span = None,
    requests: options.Requests = None,
    rate: schedules.Rate = None,
    step: schedules.Step = None,
    every: schedules.Every = None,
    ramp: schedules.Ramp = None,
    arrivals: options.Arrivals = "constant",
    threads: options.Threads = 1,
    keepalive: options.Keepalive = True,
    header: options.Header = None,
    timeout: options.Timeout = "10s",
    method: options.Method = None,
    body: options.Body = None,
    expect_status: options.ExpectStatus = None,
    expect_body: options.ExpectBody = None,
    expect_contains: requests_of.ExpectContains = None,
    requests_file: requests_of.RequestsFile = None,
    template: requests_of.Template = True,
    cookies: requests_of.Cookies = False,
    call: calls.Call = None,
    proto: calls.Proto = None,
    include: calls.Include = None,
    data: calls.Data = None,
    messages: calls.Messages = None,
    expect_data: calls.ExpectData = None,
    ws_mode: websockets.WsMode = None,
    message: websockets.Message = None,
    ws_at_once: websockets.WsAtOnce = None,
    http2: connecting.Http2 = False,
    unix: connecting.Unix = None,
    connect_to: connecting.ConnectTo = None,
    sni: connecting.Sni = None,
    alpn: connecting.Alpn = None,
    cert: connecting.Cert = None,
    key: connecting.Key = None,
    tls_min: connecting.TlsMin = None,
    insecure: options.Insecure = False,
    cacert: options.CaCert = None,
    transport: options.Transport = "auto",
    warmup: options.Warmup = "0s",
    drain: options.Drain = "2s",
    seed: options.Seed = 1,
    idle_connections: options.Idle = 0,
    as_json: options.AsJson = False,
    hdr: outputs.Hdr = None,
    csv: outputs.Csv = None,
    percentiles: outputs.Percentiles = None,
    allow_target: options.AllowTarget = None,
    fail_if: judging.FailIf = None,
) -> None:
    """Load URL in closed loop, or with -R in open loop, and report latency from due and from sent."""
    asked = judging.conditions(fail_if)
    if span is not None and requests is not None:
        raise UsageError("-z and -n exclude each other: give how long, or how many")
    wanted = searching.sought(connections, rate, requests, fail_if)
    pace = schedules.pace("1" if wanted == "rate" else rate, step, every, ramp)
    http = requests_of.Asked(
        method, body, expect_status, expect_body, expect_contains, requests_file, cookies, http2
    )
    of_grpc = {
        "--streams": None if http2 else streams,
        "--call": call,
        "--proto": proto,
        "--include": include,
        "--data": data,
    }
    of_grpc |= {"--messages": messages, "--expect-data": expect_data}
    spec: dict[str, Any] = {
        "url": url,
        "threads": threads,
        "warmup_s": _span("--warmup", warmup),
        "rate": pace.rate,
        "schedule": pace.schedule,
        "arrivals": arrivals,
        "seed": seed,
        "keepalive": keepalive,
        "headers": [_header(text) for text in header or ()],
        "timeout_s": _span("--timeout", timeout),
        "drain_s": _span("--drain", drain),
        "transport": transport,
        "insecure": insecure,
        "cacert": str(cacert) if cacert is not None else None,
        "allow_target": list(allow_target or ()),
        "tls": connecting.tls(url, sni, alpn, cert, key, tls_min),
        **connecting.spec(unix, connect_to, idle_connections, url),
    }
    if url.lower().startswith("grpc"):
        _only(url, "http", http.given)
        spec["grpc"] = calls.spec(call, proto, include, data, messages, expect_data)
        many_connections, many_streams = 10, 100
    else:
        _only(url, "grpc", of_grpc)
        spec |= http.spec(template=template)
        many_connections, many_streams = (10, 100) if http2 else (1000, 1)
    spec["connections"] = _or(searching.count(connections), many_connections if pace.is_open else 50)
    spec["streams"] = _or(streams, many_streams if pace.is_open else 1)
    if requests is not None:
        spec["requests"] = requests
    elif span is not None or not pace.schedule:
        spec["duration_s"] = _span("-z", span or DEFAULT_SPAN)
    payload = file_or_text.read("--body", body) or b""
    conversation = websockets.said(url, ws_mode, message, ws_at_once, body)
    if conversation is not None:
        spec["websocket"], payload = conversation.spec, conversation.message
    right = file_or_text.read("--expect-body", expect_body)
    files = outputs.Files(hdr, csv, percentiles)
    telling = _Telling(url, spec.get("duration_s"), as_json)
    watch = bottleneck.Watch(spec, telling.event)

    def load() -> dict[str, Any]:
        if wanted is not None:
            length = _span("-z", span or searching.SECONDS[wanted])
            searching.search(wanted, (spec, payload, right), length, fail_if or (), files, as_json)
        return engine.load(spec, payload, right, watch.event)

    document = _beside_idle(idle_connections, url, allow_target or (), load) if idle_connections else load()
    telling.end()
    document |= watch.conclude(document)
    found = judging.decided(asked, document)
    document["conditions"] = judging.documents(found)
    _tell(document, files, as_json)
    if code := judging.exit_code(document, found):
        sys.exit(code)


class _Telling:
    """Tells what happens; in a pipe, what it is told with is imported after the first request.

    A terminal has a view that takes long to import, and must not do that while the load runs.
    """

    def __init__(self, url: str, span_s: float | None, as_json: bool) -> None:
        self._progress: Progress | LoadView | None = None
        if sys.stderr.isatty() and not as_json:
            from velodrome.report.load_live import view  # noqa: PLC0415

            self._progress = view(sys.stderr, url, span_s)

    def event(self, event: Mapping[str, Any]) -> bool:
        """Show an event of the engine. Returns whether the load goes on."""
        if self._progress is None:
            if event["event"] != "tick":
                return True
            from velodrome.report.load_text import Progress  # noqa: PLC0415

            self._progress = Progress(sys.stderr)
        return self._progress.event(event)

    def end(self) -> None:
        """Take the view away again."""
        if self._progress is not None:
            self._progress.end()


def _beside_idle(
    count: int, url: str, allow: Sequence[str], load: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Return the document of a load beside which connections were held."""
    from velodrome.run.clients import idle  # noqa: PLC0415

    with idle.held(count, url, allow=allow) as held:
        document = load()
        if held is not None:
            document["idle"] = asdict(held.facts())
    return document


def _tell(document: dict[str, Any], files: outputs.Files, as_json: bool) -> None:
    """Write what came of a load."""
    from velodrome.report import load_text  # noqa: PLC0415

    outputs.write(document, files)
    if as_json:
        print(json.dumps(document))
        judging.tell(document, sys.stderr)
    else:
        load_text.show(document, sys.stdout)


def register(app: "typer.Typer") -> None:
    """Add this command to the command line."""
    app.command("load")(typed(command))
