"""h2load, nghttp2's: closed loop over HTTP/1.1 and HTTP/2, many streams on a connection, also for gRPC.

    h2load --h1 -t 1 -c 40 -D 20000ms --log-file requests.log http://127.0.0.1:8000/

It tells every request in a file, so its percentiles are exact. It knows nothing of gRPC: a call that failed
has status 200 like any other, and `grpc-status` is not read.
"""

import io
import math

import numpy as np
from numpy.typing import NDArray

from velodrome.model.load import Load, Open
from velodrome.model.measurement import UNKNOWN_LATENCY
from velodrome.run.drivers.driver import Target
from velodrome.run.drivers.foreign import (
    BODY,
    Command,
    Dialect,
    Finished,
    Report,
    Tool,
    Unfit,
    constant_arrivals,
    first_unfit,
    generator,
    match_in,
    milliseconds,
    over_http,
)
from velodrome.run.drivers.request_log import RequestLog

TOOL = Tool(
    name="h2load",
    about="closed loop over HTTP/1.1 and HTTP/2, many requests at once on a connection",
    oldest="1.43",
    cure="Install it: apt install nghttp2-client",
)
LOG = "requests.log"


def unfit(load: Load, target: Target) -> Unfit | None:
    """Refuse connections for single requests, and counts and threads it cannot share out."""
    closing = None
    if not load.keepalive:
        closing = Unfit("keepalive", False, "it keeps its connections; ab, wrk and oha can close them")
    few = None
    if load.requests is not None and load.requests < load.pace.connections:
        few = Unfit(
            "requests",
            load.requests,
            f"it wants at least one for each of {load.pace.connections} connections",
        )
    threads = None
    if load.threads > load.pace.connections:
        threads = Unfit("threads", load.threads, "each of them drives at least one connection")
    counted = None
    if load.requests is not None and isinstance(load.pace, Open):
        counted = Unfit("requests", load.requests, "with a rate it loads for a time; give a duration")
    plain = None if target.is_grpc else over_http(target)
    if target.call is not None and target.call.kind == "bidirectional":
        plain = Unfit("call", target.call.path, "it sends a whole stream at once, so it cannot chat")
    return first_unfit(plain, constant_arrivals(load), closing, few, threads, counted)


def words(load: Load, target: Target) -> Command:
    """Return its arguments."""
    over_http1 = load.streams == 1 and not target.is_grpc
    arguments = ["--h1"] if over_http1 else ["-m", str(load.streams)]
    arguments += ["-t", str(load.threads), "-c", str(load.pace.connections)]
    if load.requests is None:
        arguments += ["-D", f"{math.ceil(load.duration_s * 1000)}ms"]
    else:
        arguments += ["-n", str(load.requests)]
    if isinstance(load.pace, Open):
        arguments += ["--rps", f"{load.pace.rate / load.pace.connections:.6g}"]
    arguments += ["-N", f"{math.ceil(load.timeout_s * 1000)}ms", f"--log-file={LOG}"]
    for name, value in target.headers:
        arguments += ["-H", f"{name}: {value}"]
    if target.call is not None:
        arguments += ["-H", "content-type: application/grpc", "-H", "te: trailers", "-d", BODY]
        url = f"http://{target.address}{target.call.path}"
        return Command((*arguments, url), {BODY: target.call.sent})
    if target.method != ("POST" if target.body else "GET"):
        arguments += ["-H", f":method: {target.method}"]
    arguments += ["-d", BODY] if target.body else []
    return Command((*arguments, target.url), {BODY: target.body} if target.body else {})


def read(finished: Finished, load: Load) -> Report:
    """Return what its report and its log say. Raises ValueError or KeyError."""
    text = finished.output
    requests = match_in(
        r"^requests: (\d+) total, (\d+) started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored, "
        r"(\d+) timeout$",
        text,
        "its requests",
    )
    _, started, done, succeeded, failed, errored, late = (int(group) for group in requests.groups())
    classes = match_in(r"^status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx$", text, "its statuses")
    moved = int(classes[2])
    right = max(0, succeeded - moved)
    outcomes = {
        "ok": right,
        "bad_status": succeeded - right + max(0, failed - errored),
        "timeout": late,
        "reset": max(0, errored - late),
        "unfinished": max(0, started - done - errored) if load.requests is None else 0,
    }
    took, rate = match_in(r"^finished in (\S+), (\d+(?:\.\d+)?) req/s,", text, "how long it loaded").groups()
    told_s = milliseconds(took) / 1e3
    duration_s = done / float(rate) if done and float(rate) else told_s
    if abs(duration_s - told_s) > 0.01 + 0.01 * told_s:
        raise ValueError(f"{done} requests in {told_s:g} s are not {rate}/s")
    calls = _calls(finished.files.get(LOG, b""))
    if abs(int(calls.right.sum()) - right) > load.pace.connections * load.streams:
        raise ValueError(f"its log has {int(calls.right.sum())} correct responses, its report {right}")
    return Report(
        requests=sum(outcomes.values()),
        ok=right,
        duration_s=duration_s,
        throughput_rps=right / duration_s,
        outcomes=outcomes,
        sent=calls.latency() if right else UNKNOWN_LATENCY,
        hdr_sent=calls.histogram() if right else None,
        series=calls.series(duration_s),
        examples=tuple(
            f"{kind}: {times} times"
            for kind, times in outcomes.items()
            if times and kind not in ("ok", "unfinished")
        ),
    )


def _calls(log: bytes) -> RequestLog:
    """Read lines of start (µs since 1970), status (-1: failed) and duration (µs)."""
    rows: NDArray[np.int64] = np.zeros((0, 3), np.int64)
    if log.strip():
        rows = np.loadtxt(io.BytesIO(log), dtype=np.int64, delimiter="\t", usecols=(0, 1, 2), ndmin=2)
    if len(rows) and (rows.min() < -1 or rows[:, 0].max() > 1 << 52 or rows[:, 2].max() > 1 << 42):
        raise ValueError("its log has impossible times")
    began_ns, took_ns = rows[:, 0] * 1000, rows[:, 2] * 1000
    right = (rows[:, 1] >= 200) & (rows[:, 1] <= 299)
    return RequestLog(began_ns + took_ns, took_ns, right, timed=rows[:, 1] >= 0)


DIALECT = Dialect(
    tool=TOOL,
    unfit=unfit,
    words=words,
    read=read,
    latency_is="service time",
    checks=lambda target: "the HTTP status, not grpc-status" if target.is_grpc else "the HTTP status",
    threads=lambda load, cpus: min(load.threads, cpus),
    blind=lambda target: target.is_grpc,
    hangs="It does not end with a server that closes its connection after an answer: load that with wrk or oha",
)
driver = generator(DIALECT)
