"""The generators that are raced: how each gets its orders, and what it reports."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from track import program

UNKNOWN = "version unknown"


@dataclass(frozen=True)
class Shot:
    """What a generator is to do: closed loop, or `rate` requests per second.

    `answer_bytes` are those of a whole answer, for the floors; `right` holds the right body, for who compares it.
    """

    url: str
    connections: int
    duration_s: float
    rate: float | None = None
    keepalive: bool = True
    threads: int = 1
    poisson: bool = False
    seed: int = 1
    answer_bytes: int = 0
    right: Path | None = None


@dataclass(frozen=True)
class Report:
    """What a generator says it saw. Latencies in milliseconds, by name: mean, p50, …, max."""

    requests: int
    errors: int
    latency_ms: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Generator:
    """One contestant."""

    name: str
    command: Callable[[Shot], list[str]]
    read: Callable[[str], Report]
    version: str = ""


ENGINE = (
    "import sys; from velodrome import _native; right = open(sys.argv[2], 'rb').read() if sys.argv[2:] else None; "
    "print(_native.load(sys.argv[1], b'', right, None))"
)
"""The engine alone, without the command line around it: start-up counts as it does for the others."""


def _velodrome(shot: Shot, transport: str, varied: bool) -> list[str]:
    spec: dict[str, Any] = {
        "url": shot.url,
        "connections": shot.connections,
        "duration_s": shot.duration_s,
        "rate": shot.rate,
        "transport": transport,
        "keepalive": shot.keepalive,
        "threads": shot.threads,
        "arrivals": "poisson" if shot.poisson else "constant",
        "seed": shot.seed,
        "insecure": shot.url.startswith("https"),
    }
    if varied:
        spec |= {"template": True, "headers": [["X-Request", "{{n}}"]]}
    # A varied request whose right body is known has every answer read.
    right = [str(shot.right)] if shot.right and not varied else []
    return [sys.executable, "-c", ENGINE, json.dumps(spec), *right]


def _read_velodrome(text: str) -> Report:
    result = json.loads(text)
    errors = sum(count for outcome, count in result["outcomes"].items() if outcome != "ok")
    latency = {name: value for name, value in result["latency_ms"]["due"].items() if value is not None}
    return Report(result["requests"], errors, latency)


def _read_wrk(text: str) -> Report:
    found = re.search(r"(\d+) requests in", text)
    socket_errors = re.search(r"connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    errors = sum(map(int, socket_errors.groups())) if socket_errors else 0
    return Report(int(found[1]) if found else 0, errors + (int(wrong[1]) if wrong else 0))


def _oha(shot: Shot, path: str, corrected: bool) -> list[str]:
    command = [
        path,
        "--no-tui",
        "--output-format",
        "json",
        "-z",
        f"{shot.duration_s:g}s",
        "-c",
        str(shot.connections),
    ]
    if shot.rate is not None:
        command += ["-q", f"{shot.rate:g}"]
    if corrected:
        command.append("--latency-correction")
    if not shot.keepalive:
        command.append("--disable-keepalive")
    if shot.url.startswith("https"):
        command.append("--insecure")
    return [*command, shot.url]


def _read_oha(text: str) -> Report:
    result: dict[str, Any] = json.loads(text)
    answered = sum(result["statusCodeDistribution"].values())
    # What was in flight at the deadline is cut off by design; it is no error of the target.
    errors = sum(count for name, count in result["errorDistribution"].items() if "deadline" not in name)
    seconds = {
        "mean": result["summary"]["average"],
        "max": result["summary"]["slowest"],
        **result["latencyPercentiles"],
    }
    return Report(
        answered, errors, {name: value * 1000 for name, value in seconds.items() if value is not None}
    )


def _read_h2load(text: str) -> Report:
    found = re.search(r"(\d+) done, (\d+) succeeded, (\d+) failed", text)
    return Report(int(found[2]), int(found[3])) if found else Report(0, 0)


def _unread(_text: str) -> Report:
    return Report(0, 0)


def _version(command: list[str]) -> str:
    """Return the first thing that looks like a version in what a program says of itself."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d+[\w.+-]*", result.stdout + result.stderr)
    return found[0] if found else UNKNOWN


def velodrome(transport: str, varied: bool = False) -> Generator:
    """Our engine over one transport; `varied`: each request has its number in a header."""
    from velodrome import _native  # noqa: PLC0415 - so that a missing build is known by whoever needs it

    version = f"{_native.VERSION}{' (debug build!)' if _native.DEBUG else ''}"
    return Generator(
        f"velodrome {transport}{', filled in anew' if varied else ''}",
        lambda shot: _velodrome(shot, transport, varied),
        _read_velodrome,
        version,
    )


def wrk() -> Generator | None:
    """`wrk`, closed loop."""
    path = program("wrk")

    def command(shot: Shot) -> list[str]:
        return [
            path or "",
            f"-t{shot.threads}",
            f"-c{shot.connections}",
            f"-d{math.ceil(shot.duration_s)}s",
            "--timeout",
            "10s",
            *([] if shot.keepalive else ["-H", "Connection: close"]),
            shot.url,
        ]

    return Generator("wrk", command, _read_wrk, _version([path, "-v"])) if path else None


def oha(corrected: bool = False) -> Generator | None:
    """`oha`, both loops; `corrected` with `--latency-correction`."""
    path = program("oha")
    name = "oha --latency-correction" if corrected else "oha"
    return (
        Generator(name, lambda shot: _oha(shot, path, corrected), _read_oha, _version([path, "-V"]))
        if path
        else None
    )


def h2load() -> Generator | None:
    """`h2load`, closed loop over HTTP/1.1."""
    path = program("h2load")

    def command(shot: Shot) -> list[str]:
        return [
            path or "",
            "--h1",
            "-t1",
            f"-c{shot.connections}",
            f"-D{math.ceil(shot.duration_s)}",
            shot.url,
        ]

    return Generator("h2load", command, _read_h2load, _version([path, "--version"])) if path else None


def wrk2() -> Generator | None:
    """`wrk2`, open loop; only its arrivals are looked at."""
    path = program("wrk2")

    def command(shot: Shot) -> list[str]:
        rate = f"-R{shot.rate:g}"
        return [path or "", "-t1", f"-c{shot.connections}", f"-d{shot.duration_s:g}s", rate, shot.url]

    return Generator("wrk2", command, _unread, _version([path, "-v"])) if path else None


def vegeta() -> Generator | None:
    """`vegeta`, open loop; only its arrivals are looked at."""
    path = program("vegeta")
    connections = '-connections="$4" -max-connections="$4"'
    attack = f'echo "GET $1" | "$0" attack -rate="$2" -duration="$3s" {connections} -output=/dev/null'

    def command(shot: Shot) -> list[str]:
        words = (path or "", shot.url, f"{shot.rate:g}", f"{shot.duration_s:g}", str(shot.connections))
        return ["sh", "-c", attack, *words]

    return Generator("vegeta", command, _unread, _version([path, "--version"])) if path else None


def present(*entered: tuple[str, Generator | None]) -> tuple[list[Generator], list[str]]:
    """Part who is here from the names of who is not."""
    here = [generator for _, generator in entered if generator is not None]
    return here, [name for name, generator in entered if generator is None]
