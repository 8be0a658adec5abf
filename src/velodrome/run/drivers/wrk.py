"""wrk: closed loop over HTTP/1.1 with threads, for a number of seconds.

    wrk -t10 -c40 -d20s --latency --timeout 10s http://127.0.0.1:8000/

Its latencies are from writing a request to its last byte, and it puts values in that it thinks it missed: to
every value above twice the mean time of a request it adds a falling row of others (`stats_correct` in its
stats.c, applied in wrk.c). One pause of a second on one connection so makes a mean of 80 ms out of 0.03 ms.
"""

import math

from velodrome.model import secrets
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
    milliseconds,
    number_in,
    one_stream,
    over_http,
)

TOOL = Tool(
    name="wrk",
    about="closed loop over HTTP/1.1, for a time",
    oldest="4.0",
    cure="Install it: apt install wrk",
    version_argument="-v",
)
SCRIPT = "request.lua"
TIME = r"(\d+(?:\.\d+)?(?:us|ms|s|m|h))"


def unfit(load: Load, target: Target) -> Unfit | None:
    """Refuse rates, counts of requests, and connections that its threads do not divide."""
    count_of_requests = None
    if load.requests is not None:
        count_of_requests = Unfit("requests", load.requests, "it loads for a time; give a duration")
    uneven = None
    if load.pace.connections % load.threads:
        what = f"each of its {load.threads} threads drives as many; give a multiple"
        uneven = Unfit("connections", load.pace.connections, what)
    return first_unfit(over_http(target), closed_only(load), count_of_requests, one_stream(load), uneven)


def words(load: Load, target: Target) -> Command:
    """Return its arguments; anything but a plain GET goes by a script, and what is secret."""
    timeout_s = math.ceil(load.timeout_s)
    arguments = [f"-t{load.threads}", f"-c{load.pace.connections}", f"-d{math.ceil(load.duration_s)}s"]
    arguments += ["--latency", "--timeout", f"{timeout_s}s"]
    headers = [*target.headers, *([] if load.keepalive else [("Connection", "close")])]
    script = []
    for name, value in headers:
        if (line := f"{name}: {value}") == secrets.mask(line):
            arguments += ["-H", line]
        else:
            script.append(f"wrk.headers[{_lua(name)}] = {_lua(value)}")
    url, files = target.url, {}
    if secrets.mask(url) != url:
        script.append(f"wrk.path = {_lua(target.path)}")
        url = url[: url.index("/", url.index("://") + 3) + 1]
    if target.method != "GET" or target.body:
        script += [f'wrk.method = "{target.method}"', f'wrk.body = io.open("{BODY}", "rb"):read("*a")']
        files = {BODY: target.body}
    if script:
        arguments += ["-s", SCRIPT]
        files = {SCRIPT: "".join(f"{line}\n" for line in script).encode(), **files}
    return Command((*arguments, url), files, in_whole_seconds(load))


def _lua(text: str) -> str:
    """Return a text as Lua writes it."""
    return '"' + "".join(f"\\{byte:03}" for byte in text.encode()) + '"'


def read(finished: Finished, load: Load) -> Report:
    """Return what its report says. Raises ValueError."""
    text = finished.output
    complete = count_in(r"^ *(\d+) requests in ", text, "how many requests were answered")
    rate = number_in(r"^Requests/sec: +(\d+(?:\.\d+)?)$", text, "its rate")
    told_s = milliseconds(match_in(rf"^ *\d+ requests in {TIME},", text, "how long it loaded")[1]) / 1e3
    sockets = match_in(
        r"^  Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$"
        r"|^Requests/sec",  # without any error there is no such line
        text,
        "its errors",
    )
    connect, broken, unsent, late = (int(group or 0) for group in sockets.groups())
    bad = count_in(r"^  Non-2xx or 3xx responses: (\d+)$", text)
    # An answer of status 400 that was late as well is counted by both; the sum is the most that failed.
    right = max(0, complete - bad - late)
    outcomes = {
        "ok": right,
        "bad_status": min(bad, complete),
        "timeout": complete - right - min(bad, complete),
        "refused": connect,
        "reset": broken + unsent,
    }
    # The rate has two digits more than the time.
    duration_s = complete / rate if complete and rate else told_s
    if abs(duration_s - told_s) > 0.02 + 0.02 * told_s:
        raise ValueError(f"{complete} requests in {told_s:g} s are not {rate:g}/s")
    return Report(
        requests=sum(outcomes.values()),
        ok=right,
        duration_s=duration_s,
        throughput_rps=right / duration_s,
        outcomes=outcomes,
        sent=_latency(text) if complete else UNKNOWN_LATENCY,
        examples=_examples(connect, broken, unsent, late, bad),
        notes=(f"It leaves {late:,} answers that came after the time-out out of its latencies.",)
        if late
        else (),
        corrected=True,
    )


def _latency(text: str) -> Latency:
    mean, deviation, slowest = match_in(
        rf"^    Latency +{TIME} +{TIME} +{TIME} ", text, "its latencies"
    ).groups()
    at = {
        percent: milliseconds(match_in(rf"^ +{percent}% +{TIME} *$", text, f"its latency at {percent} %")[1])
        for percent in (50, 75, 90, 99)
    }
    return Latency(
        mean=milliseconds(mean),
        p50=at[50],
        p75=at[75],
        p90=at[90],
        p95=None,
        p99=at[99],
        p99_9=None,
        max=milliseconds(slowest),
        stdev=milliseconds(deviation),
    )


def _examples(connect: int, broken: int, unsent: int, late: int, bad: int) -> tuple[str, ...]:
    errors = {
        "refused: connections could not be made": connect,
        "reset: answers could not be read": broken,
        "reset: requests could not be written": unsent,
        "timeout: answers came after the time-out": late,
        "bad_status: answers had a status of 400 or more": bad,
    }
    most_first = sorted((times, text) for text, times in errors.items() if times)[::-1]
    return tuple(f"{text}, {times} times" for times, text in most_first)


def hint(finished: Finished) -> str:
    """Tell where an argument was refused."""
    return "Its arguments were refused: look at the load" if "Usage: wrk" in finished.output else ""


DIALECT = Dialect(
    tool=TOOL,
    unfit=unfit,
    words=words,
    read=read,
    latency_is="corrected service time",
    checks=lambda target: "the HTTP status",
    threads=lambda load, cpus: min(load.threads, cpus),
    hint=hint,
    whole_seconds=True,
)
driver = generator(DIALECT)
