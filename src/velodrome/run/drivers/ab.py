"""ab, the Apache HTTP server's: closed loop of a number of requests over HTTP/1.0, from one thread.

    ab -c 100 -n 1000 http://127.0.0.1:8000/

It speaks HTTP/1.0 and takes an answer to end when the connection does, unless the answer says `Connection:
keep-alive` (and -k is given). Its times begin when it connects. Of its two tables of percentiles the one on
paper has whole milliseconds, the one in the file (-e) three digits more.
"""

import csv
import io
import math
from urllib.parse import urlsplit

from velodrome.model.load import Load
from velodrome.model.measurement import UNKNOWN_LATENCY, Latency
from velodrome.run.drivers.driver import Target
from velodrome.run.drivers.foreign import (
    BODY,
    Command,
    Dialect,
    Finished,
    Report,
    Tool,
    Unfit,
    closed_only,
    count_in,
    first_unfit,
    generator,
    in_whole_seconds,
    match_in,
    number_in,
    one_stream,
    over_http,
)

TOOL = Tool(
    name="ab",
    about="closed loop over HTTP/1.0, of a number of requests or for a time",
    oldest="2.3",
    cure="Install it: apt install apache2-utils",
    version_argument="-V",
)
PERCENTILES = "percentiles.csv"
MOST_PER_SECOND = 200_000
"""With -t it still wants a number, and keeps 32 bytes for each; it makes a third of these on loopback."""


def unfit(load: Load, target: Target) -> Unfit | None:
    """Refuse rates, threads, and fewer requests than connections."""
    threads = None
    if load.threads > 1:
        threads = Unfit("threads", load.threads, "it has one; wrk, oha and h2load have more")
    few = None
    if load.requests is not None and load.requests < load.pace.connections:
        few = Unfit(
            "requests",
            load.requests,
            f"it wants at least one for each of {load.pace.connections} connections",
        )
    method = None
    if target.method not in ("GET", "HEAD", "POST", "PUT"):
        method = Unfit("method", target.method, "it knows GET, HEAD, POST and PUT")
    return first_unfit(over_http(target), closed_only(load), one_stream(load), threads, few, method)


def words(load: Load, target: Target) -> Command:
    """Return its arguments."""
    span = math.ceil(load.duration_s)
    arguments = ["-c", str(load.pace.connections)]
    if load.requests is None:
        arguments += ["-t", str(span), "-n", str(span * MOST_PER_SECOND)]  # in this order: -t sets -n
    else:
        arguments += ["-n", str(load.requests)]
    arguments += ["-s", str(math.ceil(load.timeout_s)), "-q", "-e", PERCENTILES]
    arguments += ["-k"] if load.keepalive else []
    kinds = [value for name, value in target.headers if name.lower() == "content-type"]
    for name, value in target.headers:
        if name.lower() != "content-type":
            arguments += ["-H", f"{name}: {value}"]
    files = {}
    if target.method == "HEAD":
        arguments += ["-i"]
    elif target.method in ("POST", "PUT"):
        arguments += ["-p" if target.method == "POST" else "-u", BODY]
        arguments += ["-T", *(kinds or ["application/octet-stream"])]
        files = {BODY: target.body}
    parts = urlsplit(target.url)
    return Command(
        (*arguments, target.url if parts.path else f"{target.url}/"), files, in_whole_seconds(load)
    )


def read(finished: Finished, load: Load) -> Report:
    """Return what its report says. Raises ValueError."""
    text = finished.output
    complete = count_in(r"^Complete requests: +(\d+)$", text, "how many requests were answered")
    failed = count_in(r"^Failed requests: +(\d+)$", text, "how many requests failed")
    told_s = number_in(r"^Time taken for tests: +(\d+\.\d+) seconds$", text, "how long it loaded")
    rate = number_in(r"^Requests per second: +(\d+\.\d+) \[#/sec\] \(mean\)$", text, "its rate")
    bad = count_in(r"^Non-2xx responses: +(\d+)$", text)
    connect = receive = length = exceptions = 0
    if failed:
        kinds = match_in(
            r"^ +\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)$",
            text,
            "how requests failed",
        )
        connect, receive, length, exceptions = (int(group) for group in kinds.groups())
    # An error page of another length than the first answer's is counted by both: at least so many are bad.
    outcomes = {
        "refused": connect,
        "reset": receive + exceptions,
        "bad_status": bad,
        "wrong_body": max(0, length - bad),
    }
    right = complete - sum(outcomes.values())
    if right < 0 or failed != connect + receive + length + exceptions:
        raise ValueError(f"{failed} failures of {complete} requests are not {outcomes}")
    outcomes = {"ok": right, **outcomes}
    # The rate has more digits than the time.
    duration_s = complete / rate if complete and rate else told_s
    if abs(duration_s - told_s) > 0.001 + 0.001 * told_s:
        raise ValueError(f"{complete} requests in {told_s:g} s are not {rate:g}/s")
    return Report(
        requests=complete,
        ok=right,
        duration_s=duration_s,
        throughput_rps=right / duration_s,
        outcomes=outcomes,
        sent=_latency(finished, text) if complete else UNKNOWN_LATENCY,
        examples=tuple(
            f"{kind}: {times} times" for kind, times in outcomes.items() if times and kind != "ok"
        ),
        notes=(*_check_kept(text, complete, load), *_twice(bad, length)),
    )


def _latency(finished: Finished, text: str) -> Latency:
    try:
        rows = list(csv.reader(io.StringIO(finished.files[PERCENTILES].decode(errors="replace"))))
    except csv.Error as error:
        raise ValueError(f"its table of percentiles is none: {error}") from error
    if rows[:1] != [["Percentage served", "Time in ms"]]:
        raise ValueError("its table of percentiles has another head")
    # Of few requests it writes 0.000 where it has no value.
    at = {int(percent): float(ms) or None for percent, ms in rows[1:]}
    mean = number_in(r"^Total: +\d+ +(\d+) ", text, "its mean latency")
    return Latency(
        # Reported in whole milliseconds, from which no mean below a hundred can be read.
        mean=mean if mean >= 100 else None,
        p50=at[50],
        p75=at[75],
        p90=at[90],
        p95=at[95],
        p99=at[99],
        p99_9=None,
        max=at.get(100),
    )


def _check_kept(text: str, complete: int, load: Load) -> tuple[str, ...]:
    """Report connections that should be kept and were not: another load than the requested one."""
    kept = count_in(r"^Keep-Alive requests: +(\d+)$", text)
    if not load.keepalive or kept == complete:
        return ()
    return (
        f"Of {complete:,} answers {kept:,} kept their connection: it speaks HTTP/1.0, where a server has to say "
        "`Connection: keep-alive`.",
    )


def _twice(bad: int, length: int) -> tuple[str, ...]:
    if not bad or not length:
        return ()
    return (
        f"It reports {bad:,} responses of another status and {length:,} of another length, not how many were both: "
        "as many as possible are assumed to be.",
    )


def hint(finished: Finished) -> str:
    """Tell the commonest cause of its giving up."""
    if "timeout specified has expired" in finished.errors:
        return (
            "It waits for the connection to end unless an answer says `Connection: keep-alive`, and gives up at "
            "the first request that is late"
        )
    if "reset by peer" in finished.errors or "refused" in finished.errors:
        return "It gives up at the first connection that is reset: see the server's listen queue (backlog)"
    return ""


DIALECT = Dialect(
    tool=TOOL,
    unfit=unfit,
    words=words,
    read=read,
    latency_is="time from connecting",
    checks=lambda target: "the HTTP status, and that all bodies are as long as the first",
    threads=lambda load, cpus: 1,
    hint=hint,
    whole_seconds=True,
)
driver = generator(DIALECT)
