"""ghz: gRPC in a closed loop and at a rate, of a number of calls or for a time.

    ghz -c 100 -n 10000 --insecure --proto service.proto --call helloworld.Greeter/SayHello
        -d '{"name": "world"}' -t 10000ms -O json 127.0.0.1:50051

Its -c counts workers, each with one call at a time: connections × streams. By default all of them share one
connection. It prints a rate even when every call failed, so only the calls with status OK are believed; it
tells a million calls one by one, and beyond that its percentiles are taken as it tells them.
"""

import json
import re
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from velodrome.model.load import Load, Open
from velodrome.model.measurement import UNKNOWN_LATENCY, Latency
from velodrome.run.calls import PROTO, greeting_json
from velodrome.run.drivers.driver import Target
from velodrome.run.drivers.foreign import (
    Command,
    Dialect,
    Finished,
    Report,
    Tool,
    Unfit,
    constant_arrivals,
    first_unfit,
    generator,
)
from velodrome.run.drivers.request_log import RequestLog

MODULE = rb"\tgithub\.com/bojand/ghz\tv(\d+\.\d+\.\d+)\t"
SERVICE, DATA = "service.proto", "data.json"
CUT_OFF = ("use of closed network connection", "client connection is closing", "code = Canceled")
"""How calls end that are in flight when its time is over: it closes the connections under them."""
CLOSES_S = 0.1
"""Before its time is over since the first call, at most, it begins to close them: it connects in that time, too."""
BROKEN = ("reset", "EOF", "broken pipe", "error reading from server", "transport is closing")


def _version(output: str, path: str) -> str:
    """Return what it says; built by `go install` it says `dev`, and the Go tools' note in the program counts."""
    if not output.strip().startswith("dev"):
        return output
    noted = re.search(MODULE, Path(path).read_bytes())
    return noted[1].decode() if noted else ""


TOOL = Tool(
    name="ghz",
    about="gRPC in a closed loop and at a rate, of a number of calls or for a time",
    oldest="0.100",
    cure="Install it: go install github.com/bojand/ghz/cmd/ghz@v0.120.0",
    version_in=_version,
)


def unfit(load: Load, target: Target) -> Unfit | None:
    """Refuse what is no gRPC, rates that are no whole number, and connections for single calls."""
    other = closing = broken = None
    if target.call is None:
        other = Unfit("protocol", target.url.partition(":")[0], "it speaks gRPC")
    elif target.call.kind == "bidirectional":
        other = Unfit("call", target.call.path, "it sends a whole stream and then waits, so it cannot chat")
    if not load.keepalive:
        closing = Unfit("keepalive", False, "it keeps its connections")
    if isinstance(load.pace, Open) and load.pace.rate != int(load.pace.rate):
        broken = Unfit("rate", load.pace.rate, "it knows whole calls per second")
    return first_unfit(other, closing, constant_arrivals(load), broken)


def words(load: Load, target: Target) -> Command:
    """Return its arguments."""
    assert target.call is not None, "unfit refuses other targets"
    connections = load.pace.connections
    arguments = ["-c", str(connections * load.streams)]
    if load.requests is None:
        arguments += ["-z", f"{round(load.duration_s * 1000)}ms"]
    else:
        arguments += ["-n", str(load.requests)]
    arguments += ["--connections", str(connections)] if connections > 1 else []
    arguments += ["--cpus", str(load.threads)] if load.threads > 1 else []
    if isinstance(load.pace, Open):
        arguments += ["--async", "-r", str(int(load.pace.rate))]
    arguments += ["--insecure", "--proto", SERVICE, "--call", target.call.path.strip("/")]
    files = {SERVICE: PROTO.read_bytes()}
    if target.body:  # the kernel takes no argument above 128 KiB
        arguments += ["-D", DATA]
        files[DATA] = greeting_json(target.call.kind, target.body).encode()
    else:
        arguments += ["-d", greeting_json(target.call.kind, target.body)]
    arguments += ["-t", f"{round(load.timeout_s * 1000)}ms", "-O", "json"]
    return Command((*arguments, target.address), files)


def read(finished: Finished, load: Load) -> Report:
    """Return what its report says. Raises ValueError and what JSON of another shape leads to."""
    report: dict[str, Any] = json.loads(finished.output)
    requests = int(report["count"])
    right = int(report["statusCodeDistribution"].get("OK", 0))
    errors = {str(text): int(times) for text, times in report["errorDistribution"].items()}
    duration_s = int(report["total"]) / 1e9
    if duration_s <= 0:
        raise ValueError("it took no time")
    details = report["details"] or []
    calls = _calls(details) if len(details) == requests else None
    at_the_end = Counter[str]()
    if calls and load.requests is None:
        at_the_end = _ended_at_the_end(calls, details, min(duration_s, load.duration_s))
    outcomes = {"ok": right} | _count_failed(errors, at_the_end, by_time=load.requests is None)
    return Report(
        requests=requests,
        ok=right,
        duration_s=duration_s,
        throughput_rps=right / duration_s,
        outcomes=outcomes,
        sent=UNKNOWN_LATENCY if not right else calls.latency() if calls else _distribution(report),
        hdr_sent=calls.histogram() if calls and right else None,
        series=calls.series(duration_s) if calls else (),
        examples=tuple(f"{text}, {times} times" for text, times in errors.items())[:5],
        notes=()
        if calls
        else ("It reported only the first million calls one by one; its percentiles are of those.",),
    )


def _ended_at_the_end(calls: RequestLog, details: list[dict[str, Any]], duration_s: float) -> Counter[str]:
    """Count by their errors the calls that ended when its time was over."""
    if not len(calls.ended_ns):
        return Counter()
    began_ns = (calls.ended_ns - calls.took_ns).min()
    closing = calls.ended_ns >= began_ns + (duration_s - CLOSES_S) * 1e9
    return Counter(str(details[number]["error"]) for number in np.flatnonzero(closing))


def _count_failed(errors: dict[str, int], at_the_end: Counter[str], *, by_time: bool) -> dict[str, int]:
    """Count the outcomes of calls that are not OK.

    It says goodbye before it closes a connection. A server that closes it first then breaks the call in flight.
    """
    outcomes = Counter[str]()
    for text, times in errors.items():
        kind = _kind(text, by_time=by_time)
        unfinished = min(times, at_the_end[text]) if kind == "reset" else 0
        outcomes[kind] += times - unfinished
        outcomes["unfinished"] += unfinished
    return +outcomes


def _kind(text: str, by_time: bool) -> str:
    """Return which outcome an error is. Only at the end of its time does it close connections itself."""
    if by_time and any(part in text for part in CUT_OFF):
        return "unfinished"
    if "code = DeadlineExceeded" in text:
        return "timeout"
    if "connection refused" in text:
        return "refused"
    if "code = Unavailable" in text and any(part in text for part in BROKEN):
        return "reset"
    return "bad_status"


def _calls(details: list[dict[str, Any]]) -> RequestLog:
    """Read what is reported of each call: when it ended, how long it took (ns), and its status."""
    ended = [int(datetime.fromisoformat(detail["timestamp"]).timestamp() * 1e6) * 1000 for detail in details]
    statuses = np.array([str(detail["status"]) for detail in details])
    return RequestLog(
        np.array(ended, np.int64),
        np.array([int(detail["latency"]) for detail in details], np.int64),
        right=statuses == "OK",
        timed=(statuses == "OK") | (statuses == "DeadlineExceeded"),
    )


def _distribution(report: dict[str, Any]) -> Latency:
    at = {int(row["percentage"]): int(row["latency"]) / 1e6 for row in report["latencyDistribution"]}
    return Latency(
        mean=None,  # its average is of failed calls too
        p50=at[50],
        p75=at[75],
        p90=at[90],
        p95=at[95],
        p99=at[99],
        p99_9=None,
        max=int(report["slowest"]) / 1e6,
    )


DIALECT = Dialect(
    tool=TOOL,
    unfit=unfit,
    words=words,
    read=read,
    latency_is="service time",
    checks=lambda target: "grpc-status",
    threads=lambda load, cpus: min(load.threads, cpus) if load.threads > 1 else cpus,
)
driver = generator(DIALECT)
