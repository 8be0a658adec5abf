"""oha: closed and open loop over HTTP/1.1 and HTTP/2, of a number of requests or for a time.

    oha --no-tui --output-format json -c 40 -z 20000ms http://127.0.0.1:8000/

With a rate (-q) it gets `--latency-correction`, so its latencies are from when requests were due. At
the end of its time it cuts off what is in flight, and tells how many those were.
"""

import json
from typing import Any

from velodrome.model.load import Load, Open
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
    constant_arrivals,
    first_unfit,
    generator,
    over_http,
)

TOOL = Tool(
    name="oha",
    about="closed and open loop over HTTP/1.1 and HTTP/2, of a number of requests or for a time",
    oldest="1.9",
    cure="Install it: cargo install oha --version 1.16.0",
)
CUT_OFF = "aborted due to deadline"
KINDS = (
    (CUT_OFF, "unfinished"),
    ("timeout", "timeout"),
    ("timed out", "timeout"),
    ("refused", "refused"),
    ("reset", "reset"),
    ("broken pipe", "reset"),
    ("closed", "reset"),
    ("incomplete", "reset"),
    ("connection error", "reset"),
)
"""What is in the text of an error, and which outcome that is; any other is `bad_protocol`."""


def unfit(load: Load, target: Target) -> Unfit | None:
    """Refuse random arrivals and rates that are no whole number."""
    broken = None
    if isinstance(load.pace, Open) and load.pace.rate != int(load.pace.rate):
        broken = Unfit("rate", load.pace.rate, "it knows whole requests per second")
    closing = None
    if not load.keepalive and load.streams > 1:
        closing = Unfit("keepalive", False, "over HTTP/2 it keeps its connections")
    return first_unfit(over_http(target), constant_arrivals(load), broken, closing)


def words(load: Load, target: Target) -> Command:
    """Return its arguments."""
    arguments = ["--no-tui", "--output-format", "json", "--disable-compression", "-r", "0"]
    arguments += ["--worker-threads", str(load.threads), "-c", str(load.pace.connections)]
    arguments += ["--http2", "-p", str(load.streams)] if load.streams > 1 else []
    if load.requests is None:
        arguments += ["-z", f"{round(load.duration_s * 1000)}ms"]
    else:
        arguments += ["-n", str(load.requests)]
    if isinstance(load.pace, Open):
        arguments += ["-q", str(int(load.pace.rate)), "--latency-correction"]
    arguments += ["-t", f"{round(load.timeout_s * 1000)}ms", "-m", target.method]
    arguments += [] if load.keepalive else ["--disable-keepalive"]
    for name, value in target.headers:
        arguments += ["-H", f"{name}: {value}"]
    if target.body:
        arguments += ["-D", BODY]
    return Command((*arguments, target.url), {BODY: target.body} if target.body else {})


def read(finished: Finished, load: Load) -> Report:
    """Return what its report says. Raises ValueError, KeyError or TypeError."""
    report: dict[str, Any] = json.loads(finished.output)
    statuses = {int(status): int(times) for status, times in report["statusCodeDistribution"].items()}
    errors = {str(text): int(times) for text, times in report["errorDistribution"].items()}
    right = sum(times for status, times in statuses.items() if 200 <= status <= 299)
    outcomes = {"ok": right, "bad_status": sum(statuses.values()) - right}
    for text, times in errors.items():
        kind = next((kind for part, kind in KINDS if part in text.lower()), "bad_protocol")
        outcomes[kind] = outcomes.get(kind, 0) + times
    duration_s = float(report["summary"]["total"])
    if duration_s <= 0:
        raise ValueError("it took no time")
    # Its table counts every answer, whatever its status.
    latency = _latency(report) if statuses else UNKNOWN_LATENCY
    opened = isinstance(load.pace, Open)
    examples = {text: times for text, times in errors.items() if CUT_OFF not in text}
    examples |= {f"status {status}": times for status, times in statuses.items() if not 200 <= status <= 299}
    return Report(
        requests=sum(outcomes.values()),
        ok=right,
        duration_s=duration_s,
        throughput_rps=right / duration_s,
        outcomes=outcomes,
        due=latency if opened else UNKNOWN_LATENCY,
        sent=UNKNOWN_LATENCY if opened else latency,
        examples=tuple(f"{text}, {times} times" for text, times in examples.items())[:5],
    )


def _latency(report: dict[str, Any]) -> Latency:
    at = {name: _ms(value) for name, value in report["latencyPercentiles"].items()}
    summary = report["summary"]
    return Latency(
        mean=_ms(summary["average"]),
        p50=at["p50"],
        p75=at["p75"],
        p90=at["p90"],
        p95=at["p95"],
        p99=at["p99"],
        p99_9=at["p99.9"],
        max=_ms(summary["slowest"]),
    )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else float(seconds) * 1e3


DIALECT = Dialect(
    tool=TOOL,
    unfit=unfit,
    words=words,
    read=read,
    latency_is="service time",
    checks=lambda target: "the HTTP status",
    threads=lambda load, cpus: min(load.threads, cpus),
)
driver = generator(DIALECT)
