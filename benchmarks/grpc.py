"""Unary gRPC calls in closed loop against one fast epoll thread: calls for each CPU-second the generator uses.

Calls are counted at the target, CPU time is all the generator's from start to end (rusage).
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import generators
from rounds import Table, absent, interleaved, middle, show, spread
from track import ROOT, Target, drive, example, program

DURATION_S = 2.0
SHAPES = ((1, 50), (50, 1), (10, 10))
"""Connections, and streams on each."""
PATH = "helloworld.Greeter/SayHello"
MESSAGE = b"\n\x05world"
FRAMED = b"\0" + len(MESSAGE).to_bytes(4, "big") + MESSAGE
PROTO = ROOT / "src" / "velodrome" / "guest" / "grpc" / "helloworld.proto"

ENGINE = (
    "import sys; from velodrome import _native; "
    "print(_native.load(sys.argv[1], bytes.fromhex(sys.argv[2]), bytes.fromhex(sys.argv[3]), None))"
)
"""The engine alone, without the command line around it: start-up counts as it does for the others."""
REPLY = b"\n\rHello, world!"
RIGHT = b"\0" + len(REPLY).to_bytes(4, "big") + REPLY


class Greeter(Target):
    """A target that reads frames and nothing in them (`crates/engine/examples/greeter.rs`)."""

    def __init__(self) -> None:
        self.start([str(example("greeter"))], pipes=True)
        self.url = f"127.0.0.1:{self.told()}"

    def requests(self) -> int:
        return int(self.ask(""))


@dataclass(frozen=True)
class Caller:
    """One contestant: `command(address, connections, streams)`, and how many calls it says were right."""

    name: str
    command: Callable[[str, int, int], list[str]]
    counted: Callable[[str], int]
    version: str
    checks: str
    """What it looks at in an answer."""


def velodrome(transport: str) -> Caller:
    """Our engine over one transport."""
    from velodrome import _native  # noqa: PLC0415 - so that a missing build is known by whoever needs it

    def command(address: str, connections: int, streams: int) -> list[str]:
        spec = {
            "url": f"grpc://{address}/{PATH}",
            "grpc": {"kind": "unary"},
            "connections": connections,
            "streams": streams,
            "duration_s": DURATION_S,
            "transport": transport,
        }
        return [sys.executable, "-c", ENGINE, json.dumps(spec), FRAMED.hex(), RIGHT.hex()]

    return Caller(
        f"velodrome {transport}",
        command,
        lambda text: int(json.loads(text)["ok"]),
        _native.VERSION,
        "grpc-status and the message",
    )


def h2load(folder: Path) -> Caller | None:
    """nghttp2's `h2load`."""
    path = program("h2load")
    body = folder / "message"
    body.write_bytes(FRAMED)

    def command(address: str, connections: int, streams: int) -> list[str]:
        shape = ["-t1", f"-c{connections}", f"-m{streams}", f"-D{DURATION_S:g}", "-d", str(body)]
        fields = ["-H", "content-type: application/grpc", "-H", "te: trailers"]
        return [path or "", *shape, *fields, f"http://{address}/{PATH}"]

    def counted(text: str) -> int:
        found = re.search(r"(\d+) succeeded", text)
        return int(found[1]) if found else 0

    if path is None:
        return None
    return Caller("h2load", command, counted, generators._version([path, "--version"]), "the HTTP status")


def ghz() -> Caller | None:
    """`ghz`; as many workers as requests are to be in flight, on as many connections as given."""
    path = program("ghz")

    def command(address: str, connections: int, streams: int) -> list[str]:
        words = ["--insecure", "--proto", str(PROTO), "--call", PATH, "-d", '{"name": "world"}']
        shape = ["-c", str(connections * streams), "--connections", str(connections)]
        return [path or "", *words, *shape, "-z", f"{DURATION_S:g}s", "-O", "json", address]

    def counted(text: str) -> int:
        return int(json.loads(text)["statusCodeDistribution"].get("OK", 0))

    if path is None:
        return None
    return Caller("ghz", command, counted, _of_module(path), "grpc-status")


def _of_module(path: str) -> str:
    """Return the version of the Go module that a program was built from: `go install` leaves `--version` empty."""
    version = generators._version([path, "--version"])
    go = program("go")
    if version != generators.UNKNOWN or go is None:
        return version
    buildinfo = subprocess.run(
        [go, "version", "-m", path], capture_output=True, text=True, check=False
    ).stdout
    found = re.search(r"^\s*mod\s+\S+\s+v?(\S+)", buildinfo, re.MULTILINE)
    return found[1] if found else version


@dataclass(frozen=True)
class Seen:
    """One run."""

    per_cpu_s: float
    per_s: float
    busy: float
    counted: float
    """Right calls, as the generator counts them, over calls the target answered."""


def run(target: Target, caller: Caller, connections: int, streams: int) -> Seen:
    """One contestant once."""
    before = target.requests()
    done = drive(caller.command(target.url, connections, streams))
    calls = target.requests() - before
    if done.status:
        raise RuntimeError(f"{caller.name} failed: {done.output[-500:]}")
    return Seen(
        calls / done.cpu_s,
        calls / DURATION_S,
        done.cpu_s / done.wall_s,
        caller.counted(done.output) / max(1, calls),
    )


def table(
    target: Target, callers: list[Caller], missing: list[str], shape: tuple[int, int], rounds: int
) -> Table:
    """All contestants with so many connections and streams."""
    connections, streams = shape
    seen = interleaved(callers, lambda caller: run(target, caller, connections, streams), rounds)
    rows = []
    for caller, runs in zip(callers, seen, strict=True):
        per_cpu_s = [repeat.per_cpu_s for repeat in runs]
        rows.append(
            (
                f"{caller.name} {caller.version}",
                f"{middle(per_cpu_s) / 1000:.1f} k",
                spread(per_cpu_s),
                f"{middle(repeat.per_s for repeat in runs) / 1000:.1f} k",
                f"{middle(repeat.busy for repeat in runs) * 100:.0f} %",
                f"{middle(repeat.counted for repeat in runs):.4f}",
                caller.checks,
            )
        )
    plural = "s" if connections > 1 else ""
    return Table(
        f"gRPC, {connections} connection{plural} × {streams} streams",
        f"Unary calls of 7 bytes, answered with 15; {rounds} interleaved rounds of {DURATION_S:g} s, medians.",
        (
            "generator",
            "calls per CPU-second",
            "spread",
            "calls/s",
            "of its CPU",
            "counted ÷ answered",
            "checks",
        ),
        tuple(rows),
        absent(missing),
    )


def tables(rounds: int) -> list[Table]:
    """One table for each number of connections and streams."""
    with tempfile.TemporaryDirectory(prefix="velodrome-bench-") as folder, Greeter() as target:
        entered = (
            ("velodrome io_uring", velodrome("io_uring")),
            ("velodrome epoll", velodrome("epoll")),
            ("h2load", h2load(Path(folder))),
            ("ghz", ghz()),
        )
        callers = [caller for _, caller in entered if caller is not None]
        missing = [name for name, caller in entered if caller is None]
        return [table(target, callers, missing, shape, rounds) for shape in SHAPES]


if __name__ == "__main__":
    show(tables, __doc__)
