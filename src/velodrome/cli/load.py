"""`velodrome load`: put load on one URL and tell what came back, honestly.

Nothing is imported here that the first request does not need: a generator that is slow to start is started less.
"""

import sys

from velodrome.cli import _load_options as options
from velodrome.cli import _load_outputs as outputs
from velodrome.cli._quick import typer_command
from velodrome.model import amounts
from velodrome.model.errors import UsageError
from velodrome.plan import option_text
from velodrome.run.engine import LoadSpec
from velodrome.usecases.load import Work, decide_conditions

TYPE_CHECKING = False  # typing's own, without typing
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import typer

DEFAULT_SPAN = "10s"


def command(
    url: options.Url,
    connections: options.Connections = None,
    streams: options.Streams = None,
    span: options.Span = None,
    requests: options.Requests = None,
    rate: options.Rate = None,
    step: options.Step = None,
    every: options.Every = None,
    ramp: options.Ramp = None,
    arrivals: options.Arrivals = None,
    threads: options.Threads = 1,
    keepalive: options.Keepalive = True,
    header: options.Header = None,
    header_file: options.HeaderFile = None,
    secret: options.Secret = None,
    timeout: options.Timeout = "10s",
    method: options.Method = None,
    body: options.Body = None,
    expect_status: options.ExpectStatus = None,
    expect_body: options.ExpectBody = None,
    expect_contains: options.ExpectContains = None,
    requests_file: options.RequestsFile = None,
    trust: options.Trust = False,
    template: options.Template = True,
    cookies: options.Cookies = False,
    call: options.Call = None,
    proto: options.Proto = None,
    include: options.Include = None,
    data: options.Data = None,
    messages: options.Messages = None,
    expect_data: options.ExpectData = None,
    ws_mode: options.WsMode = None,
    message: options.Message = None,
    ws_at_once: options.WsAtOnce = None,
    http2: options.Http2 = False,
    unix: options.Unix = None,
    connect_to: options.ConnectTo = None,
    sni: options.Sni = None,
    alpn: options.Alpn = None,
    cert: options.Cert = None,
    key: options.Key = None,
    tls_min: options.TlsMin = None,
    insecure: options.Insecure = False,
    cacert: options.CaCert = None,
    transport: options.Transport = "auto",
    agents: options.Agents = None,
    keys: options.Keys = None,
    warmup: options.Warmup = "0s",
    drain: options.Drain = "2s",
    seed: options.Seed = 1,
    idle_connections: options.Idle = 0,
    as_json: options.AsJson = False,
    hdr: outputs.Hdr = None,
    csv: outputs.Csv = None,
    percentiles: outputs.Percentiles = None,
    allow_target: options.AllowTarget = None,
    fail_if: outputs.FailIf = None,
) -> None:
    """Load URL in closed loop, or with -R in open loop, and report latency from due and from sent."""
    outputs.end_on_signals()
    headers = [_header(text) for text in _headers(header, header_file)]
    if headers or secret or body or data or message or requests_file or "?" in url or "@" in url:
        _make_known(secret or (), url, headers, (body, data, message))
    failing = outputs.conditions(fail_if)
    if span is not None and requests is not None:
        raise UsageError("-z and -n exclude each other: give how long, or how many")
    at_most = outputs.count(connections)
    options.check_numbers(
        connections=at_most,
        streams=streams,
        requests=requests,
        threads=threads,
        seed=seed,
        expect_status=expect_status,
    )
    options.check_idle(idle_connections)
    files = outputs.Files(hdr, csv, percentiles)
    outputs.check_files(files)
    url, note = options.of_loopback(url)
    wanted = outputs.search_options(connections, rate, requests, fail_if)
    pace = options.pace("1" if wanted == "rate" else rate, step, every, ramp)
    _refuse_needless(arrivals if not pace.is_open else None, keys if agents is None else None)
    http = options.HttpOptions(
        method,
        body,
        expect_status,
        expect_body,
        expect_contains,
        requests_file,
        cookies,
        http2,
        headers,
        trust,
    )
    grpc = options.GrpcOptions(None if http2 else streams, call, proto, include, data, messages, expect_data)
    process: Any = arrivals or ("poisson" if wanted == "rate" else "constant")
    spec = LoadSpec(
        url=url,
        threads=threads,
        warmup_s=_span("--warmup", warmup),
        rate=pace.rate,
        schedule=pace.schedule,
        arrivals=process,
        seed=seed,
        keepalive=keepalive,
        headers=headers,
        timeout_s=_span("--timeout", timeout),
        drain_s=_span("--drain", drain),
        transport=transport,
        insecure=insecure,
        cacert=cacert,
        allow_target=allow_target or (),
        tls=options.tls(url, sni, alpn, cert, key, tls_min, {"--insecure": insecure, "--cacert": cacert}),
        **options.connection_spec(unix, connect_to, idle_connections, url),
        **_protocol(url, http, grpc, template=template),
        **_at_once(url, at_most, streams, pace, http2=http2),
        **_length(span, requests, pace),
        **_content(body, expect_body, options.conversation(url, ws_mode, message, ws_at_once, body)),
    )
    work = Work(spec, idle_connections, (note,) if note else (), agents, keys)
    output = outputs.LoadOutput(files, as_json)
    if wanted is not None:
        if agents is not None:
            raise UsageError("--agents carry one load: leave it out of a search (-R auto, -c auto)")
        length = _span("-z", span or outputs.SECONDS[wanted])
        outputs.search(wanted, work, length, fail_if or (), output)
    interruption = outputs.Interruption()
    document = outputs.run_load(work, output, interruption)
    found = decide_conditions(failing, document)
    document["conditions"] = outputs.documents(found)
    try:
        output.show(document)
    except OSError:
        if not interruption.interrupted:  # by the end of the terminal, perhaps
            raise
    interruption.over()
    if code := outputs.EXIT_CODE if interruption.interrupted else outputs.exit_code(document, found):
        sys.exit(code)


def _protocol(
    url: str, http: options.HttpOptions, grpc: options.GrpcOptions, *, template: bool
) -> "dict[str, Any]":
    """Return the requests, in the fields of the protocol that the URL names."""
    if url.lower().startswith("grpc"):
        _only(url, "http", http.given)
        return {"grpc": grpc.spec()}
    _only(url, "grpc", grpc.given)
    return http.spec(template=template)


def _refuse_needless(arrivals: str | None, keys: str | None) -> None:
    """Refuse options that say nothing to a closed loop, and to a load without agents."""
    if arrivals is not None:
        from velodrome.model.errors import NeedlessOptionError  # noqa: PLC0415

        why = "in a closed loop a response makes room for the next request; give a rate (-R)"
        raise NeedlessOptionError(["--arrivals"], why)
    if keys is not None:
        from velodrome.model.errors import WithoutAgentsError  # noqa: PLC0415

        raise WithoutAgentsError(["--keys"])


def _only(url: str, wanted: str, given: "Mapping[str, object]") -> None:
    """Refuse options that say nothing to this kind of server."""
    for option, value in given.items():
        if value:
            from velodrome.model.errors import MisplacedOptionError  # noqa: PLC0415

            raise MisplacedOptionError(
                option, url, wanted, "--http2" if option == "--streams" and url[:4].lower() == "http" else ""
            )


def _at_once(
    url: str, connections: int | None, streams: int | None, pace: options.Pace, *, http2: bool
) -> "dict[str, Any]":
    """Return how much can be on its way at once: in open loop enough not to be what limits it."""
    usual = (50, 1)
    if pace.is_open:
        usual = (10, 100) if http2 or url.lower().startswith("grpc") else (1000, 1)
    return {
        "connections": usual[0] if connections is None else connections,
        # What nobody requested is no reason to refuse a load.
        "fewer_connections": connections is None and pace.is_open,
        "streams": usual[1] if streams is None else streams,
    }


def _length(span: str | None, requests: int | None, pace: options.Pace) -> "dict[str, Any]":
    """Return when the load ends; a schedule ends by itself."""
    if requests is not None:
        return {"requests": requests}
    if span is None and pace.schedule:
        return {}
    return {"duration_s": _span("-z", span or DEFAULT_SPAN)}


def _content(
    body: str | None, expect_body: str | None, conversation: options.Conversation | None
) -> "dict[str, Any]":
    """Return the bodies, which may be files."""
    sent = option_text.read_content("--body", body) or b""
    right = option_text.read_content("--expect-body", expect_body)
    if conversation is None:
        return {"body": sent, "expect_body": right}
    return {"websocket": conversation.spec, "body": conversation.message, "expect_body": right}


def _span(option: str, text: str) -> float:
    try:
        return amounts.seconds(text)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def _header(text: str) -> list[str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        # What stands there may be a secret, so it is not shown.
        raise UsageError("-H: this is not a header; write -H 'Name: value'")
    return [name.strip(), value.strip()]


def _headers(lines: "list[str] | None", files: "list[str] | None") -> "list[str]":
    """Return the headers given, those of files first. Raises HeaderFileError."""
    if not files:
        return lines or []
    from pathlib import Path  # noqa: PLC0415

    from velodrome.plan.requests import lines as headers  # noqa: PLC0415

    return [*(line for file in files for line in headers.lines_of(Path(file))), *(lines or ())]


def _make_known(
    names: "Sequence[str]", url: str, headers: "Sequence[Sequence[str]]", texts: "Sequence[str | None]"
) -> None:
    """Have secrets of a load masked in all that is reported of it, once the first of it is reported."""
    from velodrome.model import secrets  # noqa: PLC0415

    secrets.mark(names)
    pairs = [(name, value) for name, value in headers]
    secrets.later(
        lambda: secrets.of_request(url, pairs, map(_whole_text, texts), [name for name, _ in pairs])
    )


def _whole_text(text: str | None) -> str:
    """Return a text, or that of the file it names; a file that cannot be read is reported where it is sent."""
    try:
        return (option_text.read_content("", text) or b"").decode(errors="replace")
    except UsageError:
        return ""


def register(app: "typer.Typer") -> None:
    """Add this command to the command line."""
    app.command("load")(typer_command(command, options.GROUPS))
