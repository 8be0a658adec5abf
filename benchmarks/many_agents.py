"""One load by very many agents: what it costs the coordinator and the command that conducts it.

The coordinator, the command and the agents are velodrome's own, over TLS; only the engine of an agent is a stub: what
it reports each second, and what it measured, is what a real engine reported and measured in a load of one second.
`velodrome.run.cluster` is what is measured. The stubs share the machine, and take most of it: many stand in a process.

    python benchmarks/many_agents.py --agents 100 1000 3000
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
from rounds import Table, alone, measured
from track import ThirdParty, allow_files

MANY = (100, 1000, 3000)
EACH_PROCESS = 250
"""Stubs of one process."""
LOAD_S = 5.0
RATE_EACH = 100.0
START_S = 240.0
PARTS = {"number": 0, "of": 1}


def recorded(folder: Path) -> None:
    """Have a real engine carry a part of a load, and keep its events and its document."""
    from velodrome import _native  # noqa: PLC0415 - the processes of stubs do without
    from velodrome.run.engine import LoadSpec  # noqa: PLC0415

    ticks: list[str] = []
    with ThirdParty() as target:
        spec = LoadSpec(url=target.url, rate=1000.0, duration_s=3.0, connections=10, part=PARTS)

        def deliver(line: str) -> int:
            if '"ready"' in line:
                return time.monotonic_ns() + 10_000_000
            ticks.append(line)
            return 1

        document = _native.load(spec.json(), b"", None, deliver)
    (folder / "document").write_text(document)
    (folder / "tick").write_text(ticks[-2])


def stubs(address: str, keys: Path, folder: Path, first: int, many: int) -> None:
    """Be so many agents whose engines are stubs, until standard input ends."""
    from velodrome.run.cluster import agent, talking  # noqa: PLC0415 - not in the process of the benchmark

    document, tick = (folder / "document").read_text(), json.loads((folder / "tick").read_text())

    class Stub(agent.Agent):
        """An agent; what it measures was measured before."""

        load, begins, ends = "", 0, 0.0
        metrics_at_first: dict[str, Any] | None = None

        async def start_unsafe(self) -> Any:
            """Begin, without what a worker of Dask does to watch itself: each agent has CPUs of its own for that."""
            begun = await super().start_unsafe()
            for name, callback in self.periodic_callbacks.items():
                if name not in ("heartbeat", "keep-alive"):
                    callback.stop()
            return begun

        async def get_metrics(self) -> dict[str, Any]:
            """Return what is sent with each beat of the heart: what it was at first."""
            self.metrics_at_first = self.metrics_at_first or await super().get_metrics()
            return self.metrics_at_first

        async def prepare(self, load: str, spec: str, body: bytes, expected: bytes | None) -> str:
            self.load, self.ends = load, json.loads(spec)["duration_s"]
            return json.dumps({"ready": True})

        async def begin(self, load: str, at_ns: int) -> bool:
            self.begins = at_ns
            if at_ns < time.monotonic_ns():
                print("late", flush=True)
            return load == self.load

        async def poll(self, load: str) -> str:
            now = time.monotonic_ns()
            at_s = (now - self.begins) / 1e9 if self.begins else -1.0
            phase = "ready" if at_s < 0 else "measuring" if at_s < self.ends else "done"
            return json.dumps({"phase": phase, "tick": tick, "error": "", "kind": "", "now": now})

        async def take(self, load: str) -> str:
            self.begins = 0
            return json.dumps({"document": document, "steal": 0.0})

        async def end(self, load: str) -> bool:
            return True

    async def serve() -> None:
        way, at_once, ended = talking.security("tls", keys), asyncio.Semaphore(8), asyncio.Event()
        loop = asyncio.get_running_loop()
        threading.Thread(
            target=lambda: (sys.stdin.read(), loop.call_soon_threadsafe(ended.set)), daemon=True
        ).start()

        async def one(number: int) -> Stub:
            policy = agent.Policy(f"stub-{number:05}", cpus=(number,))
            async with at_once:
                return await Stub(address, policy, host="127.0.0.1", protocol="tls://", security=way)

        found = await asyncio.gather(*(one(first + number) for number in range(many)))
        print("here", flush=True)
        await ended.wait()
        os._exit(len(found) and 0)  # in order it would take a minute

    asyncio.run(serve())


def conduct(address: str, keys: Path) -> None:
    """Conduct one load as the command does, and print how long its parts took and what they cost."""
    from velodrome.run.cluster import conducting, merging, talking  # noqa: PLC0415 - in this process only
    from velodrome.run.engine import LoadSpec  # noqa: PLC0415

    took: dict[str, float] = {}

    def timed(where: Any, name: str) -> None:
        inner = getattr(where, name)

        async def outer(*arguments: Any) -> Any:
            began = time.monotonic()
            try:
                return await inner(*arguments)
            finally:
                took[name] = time.monotonic() - began

        setattr(where, name, outer)

    merge = merging.merge_documents

    def merged(parts: Any) -> Any:
        began = time.monotonic()
        found = merge(parts)
        took["merged"] = time.monotonic() - began
        return found

    merging.merge_documents = merged
    for where, name in (
        (conducting, "present"),
        (conducting, "align"),
        (conducting._Load, "_get_ready"),
        (conducting._Load, "_begin"),
        (conducting._Load, "_document"),
    ):
        timed(where, name)
    marks: list[tuple[float, float]] = []

    def note(_event: Mapping[str, Any]) -> bool:
        used = resource.getrusage(resource.RUSAGE_SELF)
        marks.append((time.monotonic(), used.ru_utime + used.ru_stime))
        return True

    spec = LoadSpec(
        url="http://127.0.0.1:9/", rate=RATE_EACH * 1000, duration_s=LOAD_S, connections=1_000_000
    )
    began = time.monotonic()
    document = talking.run(
        conducting.load(spec, talking.Address.read(address), talking.security("tls", keys), note)
    )
    whole = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    inside = [mark for mark in marks if mark[0] <= marks[0][0] + LOAD_S]
    span = max(inside[-1][0] - inside[0][0], 1e-9)
    print(
        json.dumps(
            took
            | {
                "whole": whole,
                "cpu": used.ru_utime + used.ru_stime,
                "cpu_share": (inside[-1][1] - inside[0][1]) / span,
                "memory": used.ru_maxrss * 1024,
                "lost": sum(row["lost"] is not None for row in document["agents"]),
                "uncertainty_ms": max(row["uncertainty_ms"] for row in document["agents"]),
                "requests": document["requests"],
                "progress": len(marks),
            }
        )
    )


@contextmanager
def cluster(folder: Path, many: int) -> Iterator[tuple[str, Path, psutil.Process]]:
    """Have a coordinator with so many stubs."""
    from velodrome.run.cluster import coordinator, keys  # noqa: PLC0415 - brings Dask

    made = keys.make(folder / f"keys-{many}").folder
    with ExitStack() as stack:
        before = {child.pid for child in psutil.Process().children()}
        address = stack.enter_context(coordinator.coordinating("127.0.0.1", 0, 0, scheme="tls", folder=made))
        (process,) = [child for child in psutil.Process().children() if child.pid not in before]
        crowd = []
        for first in range(0, many, EACH_PROCESS):
            how = (
                "--stubs",
                address,
                str(made),
                str(folder),
                str(first),
                str(min(EACH_PROCESS, many - first)),
            )
            stubs = subprocess.Popen(
                [sys.executable, __file__, *how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            stack.callback(stubs.communicate)
            crowd.append(stubs)
        for stubs in crowd:
            assert stubs.stdout is not None
            if stubs.stdout.readline() != "here\n":
                raise RuntimeError("a process of stubs ended")
        yield address, made, process


def run(folder: Path, many: int) -> dict[str, Any]:
    """Conduct one load by so many agents."""
    began = time.monotonic()
    with cluster(folder, many) as (address, made, process):
        joined = time.monotonic() - began
        before, at = process.cpu_times(), time.monotonic()
        done = subprocess.run(
            [sys.executable, __file__, "--conduct", address, str(made)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        after, span = process.cpu_times(), time.monotonic() - at
        cpu = after.user + after.system - before.user - before.system
        found: dict[str, Any] = json.loads(done.stdout)
        return found | {
            "joined": joined,
            "coordinator_cpu_share": cpu / span,
            "coordinator_memory": process.memory_info().rss,
        }


def row(many: int, measured: Mapping[str, Any]) -> tuple[str, ...]:
    """One line of the table."""
    barrier = measured["_get_ready"] + measured["_begin"]
    return (
        f"{many:,}",
        f"{measured['present']:.2f} s",
        f"{measured['align']:.2f} s",
        f"{barrier:.2f} s",
        f"{measured['cpu_share'] * 100:.0f} %",
        f"{measured['merged']:.2f} s",
        f"{measured['_document'] - measured['merged']:.2f} s",
        f"{measured['whole'] - LOAD_S:.1f} s",
        f"{measured['memory'] / 1e6:.0f} MB",
        f"{measured['coordinator_cpu_share'] * 100:.0f} %",
        f"{measured['coordinator_memory'] / 1e6:.0f} MB",
        f"±{measured['uncertainty_ms']:.2f} ms",
        str(measured["lost"]),
    )


def tables(agents: tuple[int, ...] = MANY) -> list[Table]:
    """The table of this benchmark."""
    allow_files()
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        recorded(folder)
        rows = []
        for many in agents:
            seen = run(folder, many)
            print(many, json.dumps(seen), file=sys.stderr)
            rows.append(row(many, seen))
    return [
        Table(
            "Very many agents",
            f"Stubs of engines, over TLS, all on this machine; a load of {LOAD_S:g} s, once.",
            (
                "agents",
                "met in",
                "clocks read in",
                "barrier passed in",
                "command's CPU in the load",
                "merged in",
                "clocks read again in",
                "whole, beyond the load",
                "command's memory",
                "coordinator's CPU",
                "coordinator's memory",
                "clocks known to",
                "lost",
            ),
            tuple(rows),
            ("CPU is of one CPU; stubs have what is left of the machine, and are most of it.",),
        )
    ]


def main() -> None:
    """Be one of its processes, or run it."""
    if sys.argv[1:2] == ["--stubs"]:
        allow_files()
        address, keys, folder, first, many = sys.argv[2:]
        stubs(address, Path(keys), Path(folder), int(first), int(many))
    elif sys.argv[1:2] == ["--conduct"]:
        conduct(sys.argv[2], Path(sys.argv[3]))
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("--agents", nargs="+", type=int, default=list(MANY), help="how many")
        chosen = tuple(parser.parse_args().agents)
        with alone("a benchmark"):
            for table in measured(lambda _: tables(chosen), 1):
                print(table.text())


if __name__ == "__main__":
    main()
