"""HB: a heartbeat in the server's own process while it is loaded, and what it saw (`guest/injected/heartbeat.py`).

    with standing(trial, lab, BEATING) as server:
        server.warm()
        seen = watch(server, connections=8, seconds=3.0)

It intrudes: what it is in is no measured arm, unless it is in both.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from velodrome.guest.injected.marks import OWN
from velodrome.model.diagnosis import Collection, Sampled, Stall, Timeline
from velodrome.model.measurement import Measurement
from velodrome.model.symptoms import Called, Collected, Frame, HeldUp, Run, Statement, Waits, Watched
from velodrome.run.drivers.driver import LoadEvent
from velodrome.run.instruments.standing import Standing, figures

SETTLE_S = 0.6
"""What was seen is written twice a second."""
OLDEST = 2
"""Generation of the collections that go through the whole heap."""
DEPTH = 40
STACKS = 50
LINES = 3
"""Of the app's own code, in which threads are most of the time."""
SHOWN = 8
"""Frames of a stack in the timeline, the innermost first."""
MOST = 1000
"""Stalls, and collections, in the timeline."""


def watch(server: Standing, connections: int, seconds: float) -> Watched:
    """Measure a closed loop and return what the heartbeat saw meanwhile. Raises NoServerError."""
    began, loaded = time.monotonic(), list[float]()

    def on(event: LoadEvent) -> bool:
        if event.kind == "measuring":
            loaded.append(event.facts["monotonic_ns"] / 1e9)
        return True

    measured = server.run_closed_loop(connections, seconds, also=on)
    time.sleep(SETTLE_S)
    lines = [*server.read_lines(), *server.read_lines("gc")]
    span = (loaded[0], loaded[0] + seconds) if loaded else None
    found = read_heartbeats(lines, began, time.monotonic(), figures(measured).rps, span)
    return replace(found, timeline=timeline(lines, loaded[0], measured)) if loaded else found


def time_collections(server: Standing, connections: int, seconds: float) -> Collected:
    """Measure a closed loop and return what garbage was collected meanwhile, under the treatment `COLLECTING`.

    Raises NoServerError.
    """
    began = time.monotonic()
    server.run_closed_loop(connections, seconds)
    ended = time.monotonic()
    garbage = Garbage()
    for line in server.read_lines("gc"):
        with suppress(KeyError, TypeError, ValueError):
            if began <= float(line["at"]) <= ended:
                garbage.add(line)
    return garbage.most(ended - began)


def timeline(lines: Iterable[Mapping[str, Any]], begin: float, measured: Measurement) -> Timeline:
    """Return what heartbeats wrote of a load that began to be measured at `begin`, beside its counters.

    Lines that are none of theirs are passed over.
    """
    span_s = measured.load.duration_s
    stacks: dict[tuple[str, ...], int] = {}
    stalls, collections = list[Stall](), list[Collection]()
    for line in lines:
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            at_s = float(line["at"]) - begin
            if not 0 <= at_s <= span_s:
                continue
            if "stall" in line:
                stalls.append(_stall(at_s, line, stacks))
            elif "gc" in line:
                collections.append(Collection(at_s, float(line["gc"]), int(line["generation"])))
    return Timeline(
        measured.trial.load.label,
        span_s,
        tuple(stacks),
        tuple(sorted(stalls, key=lambda stall: stall.at_s)[:MOST]),
        tuple(sorted(collections, key=lambda collection: collection.at_s)[:MOST]),
        tuple(_counts(measured)),
    )


def _stall(at_s: float, line: Mapping[str, Any], stacks: dict[tuple[str, ...], int]) -> Stall:
    """Return a stall; its stack gets a place among `stacks`, unless there are too many already."""
    places = list(line["places"])
    ran_s, blocked_s = (sum(float(one[name]) for one in places) for name in ("ran_s", "blocked_s"))
    longest = max(places, key=lambda one: float(one["seconds"]), default=None)
    frames = tuple(_frame(one) for one in longest["frames"][:SHOWN]) if longest else ()
    place = None
    if frames:
        named = HeldUp(frames, 0.0, 0.0, 0.0, 1).named
        said = (_frame_name(named), *(_frame_name(frame) for frame in frames))
        if said in stacks or len(stacks) < STACKS:
            place = stacks.setdefault(said, len(stacks))
    return Stall(at_s, float(line["stall"]), ran_s, blocked_s, place)


def _frame_name(frame: Frame) -> str:
    return f"{frame.function} ({frame.place}): {frame.text.strip()}".removesuffix(": ")


def _counts(measured: Measurement) -> Iterator[Sampled]:
    """Yield what the sampler saw, each sample since the one before."""
    cpu_s, at_s, overflows, throttled_s = 0.0, 0.0, 0, 0.0
    for sample in measured.server.samples:
        yield Sampled(
            sample.at_s,
            max(sample.cpu_s - cpu_s, 0.0) / max(sample.at_s - at_s, 1e-9),
            None if sample.throttled_s is None else max(sample.throttled_s - throttled_s, 0.0),
            None if sample.overflows is None else max(sample.overflows - overflows, 0),
            sample.listen_queue,
        )
        cpu_s, at_s = sample.cpu_s, sample.at_s
        overflows, throttled_s = sample.overflows or overflows, sample.throttled_s or throttled_s


def read_heartbeats(
    lines: Iterable[Mapping[str, Any]],
    begin: float,
    end: float,
    rps: float = 0.0,
    load: tuple[float, float] | None = None,
) -> Watched:
    """Return what heartbeats wrote from `begin` to `end`; lines that are none of theirs are passed over.

    `rps` is of the load, which was measured within `load`; None: all of the time. Statements are counted in that only.
    """
    held: dict[tuple[Frame, ...], list[float]] = {}
    seconds = looped = looked = late = others = 0.0
    samples: dict[str, float] = {}
    computing: dict[str, float] = {}
    calls: dict[tuple[str, str, str, str], float] = {}
    loop, threads, libraries = "", dict[str, int](), set[str]()
    waits, waiting, connects, ports = dict[str, Waits](), dict[str, int](), dict[str, int](), 0
    left_behind, limited = set[str](), False
    span = [math.inf, -math.inf]
    sent, garbage = Sent(*(load or (begin, end))), Garbage()
    for line in lines:
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            if not begin <= float(line["at"]) <= end:
                continue
            if "stall" in line:
                late += float(line["stall"])
                others += float(line.get("others_s", 0.0))
                for place in line["places"]:
                    _add(held, place)
            elif "gc" in line:
                garbage.add(line)
            elif "seen" in line:
                seconds += float(line["seen"])
                looped += float(line["seen"]) if line["loop"] else 0.0
                loop = str(line["loop"] or loop)
                _add_each(samples, line["samples"])
                _add_each(computing, line.get("computing", {}))
                _add_calls(calls, line.get("calls", ()))
                sent.add(line)
                for name, count in line["threads"].items():
                    threads[str(name)] = max(threads.get(str(name), 0), int(count))
                libraries |= set(map(str, line["libraries"]))
                limited = limited or bool(line.get("limited"))
                left_behind |= set(map(str, line.get("left_behind", ())))
                if float(line["at"]) - float(line["seen"]) >= begin:
                    looked += float(line["seen"]) if line["loop"] else 0.0
                    at = float(line["at"])
                    span = [min(span[0], at - float(line["seen"])), max(span[1], at)]
                    for name, count in line.get("waiting", {}).items():
                        waiting[str(name)] = max(waiting.get(str(name), 0), int(count))
                    for name, count in line.get("connects", {}).items():
                        connects[str(name)] = connects.get(str(name), 0) + int(count)
                    ports = max(ports, int(line.get("ports", 0)))
                    for place in line.get("waits", ()):
                        _wait(waits, place)
    places = [
        HeldUp(stack, took, ran, blocked, int(times)) for stack, (took, ran, blocked, times) in held.items()
    ]
    places.sort(key=lambda held_up: -held_up.seconds)
    every = samples.pop("all", 0.0)
    shares = {name: spent / every for name, spent in samples.items() if every}
    called = _called(calls, {**samples, OWN: every})
    # A master that only looks after its workers has no loop, and no share in their time.
    served = looped or seconds
    collected = garbage.most(end - begin)
    return Watched(
        served,
        loop,
        late,
        tuple(places[:STACKS]),
        collected.collections_s,
        collected.longest_s,
        shares,
        {name: spent / served for name, spent in samples.items() if served},
        {name: tuple(places) for name, places in called.items()},
        tuple(called.get(OWN, ())[:LINES]),
        threads,
        frozenset(libraries),
        rps,
        others,
        looked,
        tuple(sorted(waits.values(), key=lambda wait: -wait.seconds)[:STACKS]),
        waiting,
        sent.statements(rps),
        sent.span_s,
        connects,
        ports,
        left_behind=frozenset(left_behind),
        limited=limited,
        connected_s=max(span[1] - span[0], 0.0),
        computing={name: spent / served for name, spent in computing.items() if served},
        lasted_s=collected.seconds,
    )


def _add_each(sums: dict[str, float], line: Mapping[str, float]) -> None:
    for name, seconds in line.items():
        sums[str(name)] = sums.get(str(name), 0.0) + float(seconds)


def _add(held: dict[tuple[Frame, ...], list[float]], place: Mapping[str, Any]) -> None:
    stack = tuple(_frame(one) for one in place["frames"][:DEPTH])
    if not stack:
        return
    sums = held.setdefault(stack, [0.0, 0.0, 0.0, 0.0])
    for number, name in enumerate(("seconds", "ran_s", "blocked_s")):
        sums[number] += float(place[name])
    sums[3] += 1


def _called(
    calls: Mapping[tuple[str, str, str, str], float], spent_in: Mapping[str, float]
) -> dict[str, list[Called]]:
    """Return from where each mark is called, most of the time in it first."""
    found: dict[str, list[Called]] = {}
    for (mark, *source), spent in sorted(calls.items(), key=lambda item: -item[1]):
        if spent_in.get(mark):
            place, function, text = source
            found.setdefault(mark, []).append(Called(place, function, text, spent / spent_in[mark]))
    return found


@dataclass
class Garbage:
    """Collections of the whole heap, by the process that made them."""

    each: dict[Any, list[float]] = field(default_factory=dict)

    def add(self, line: Mapping[str, Any]) -> None:
        """Take in a collection; one of young objects is passed over."""
        if int(line["generation"]) >= OLDEST:
            self.each.setdefault(line.get("pid"), []).append(float(line["gc"]))

    def most(self, seconds: float) -> Collected:
        """Return those of the process that spent most on them, in a load that took so long."""
        most = max(self.each.values(), key=math.fsum, default=[])
        return Collected(seconds, math.fsum(most), max(most, default=0.0))


@dataclass
class Sent:
    """Statements to databases that heartbeats reported of a load, put together."""

    begin: float
    end: float
    first: float = math.inf
    last: float = -math.inf
    sums: dict[tuple[str, str, str, str], list[float]] = field(default_factory=dict)

    @property
    def span_s(self) -> float:
        """For how long they were followed."""
        return max(self.last - self.first, 0.0)

    def add(self, line: Mapping[str, Any]) -> None:
        """Take in what was seen, if all of it was during the load."""
        since = float(line["at"]) - float(line["seen"])
        if since < self.begin or float(line["at"]) > self.end:
            return
        self.first, self.last = min(self.first, since), max(self.last, float(line["at"]))
        for one in line.get("statements", ()):
            place = f"{one['file']}:{int(one['line'])}"
            sums = self.sums.setdefault(
                (str(one["statement"]), place, str(one["function"]), str(one["text"])), [0.0, 0.0]
            )
            sums[0] += float(one["seconds"])
            sums[1] += int(one["times"])

    def statements(self, rps: float) -> tuple[Statement, ...]:
        """Return them, the longest first, of a load with so many requests a second."""
        requests = max(rps * self.span_s, 1.0)
        found = [Statement(*key, times / requests, seconds) for key, (seconds, times) in self.sums.items()]
        return tuple(sorted(found, key=lambda statement: -statement.seconds)[:STACKS])


def _add_calls(calls: dict[tuple[str, str, str, str], float], found: Iterable[Mapping[str, Any]]) -> None:
    """Add up where from marks are called: by mark, place, function and line of source."""
    for call in found:
        key = (
            str(call["mark"]),
            f"{call['file']}:{int(call['line'])}",
            str(call["function"]),
            str(call["text"]),
        )
        calls[key] = calls.get(key, 0.0) + float(call["seconds"])


def _wait(waits: dict[str, Waits], place: Mapping[str, Any]) -> None:
    """Add up where tasks wait."""
    run = place["run"]
    column = f":{place['column']}" if place.get("column") is not None else ""
    inner = bool(place["inner"])
    file, key = str(place["file"]), f"{place['file']}:{place['line']}{column}{'' if inner else ' around'}"
    before = waits.get(key)
    waits[key] = Waits(
        f"{file}:{int(place['line'])}",
        str(place["function"]),
        str(place["text"]),
        float(place["seconds"]) + (before.seconds if before else 0.0),
        max(int(place["most"]), before.most if before else 0),
        inner,
        Run(
            file,
            int(run["line"]),
            int(run["end_line"]),
            int(run["awaits"]),
            bool(run["loops"]),
            str(run["before"]),
            str(run["after"]),
        )
        if run
        else None,
        str(place.get("holds") or (before.holds if before else "")),
    )


def _frame(place: Mapping[str, Any]) -> Frame:
    column, end = place.get("column"), place.get("end_column")
    return Frame(
        str(place["file"]),
        int(place["line"]),
        str(place["function"]),
        bool(place["awaits"]),
        bool(place["own"]),
        int(place["end_line"] or place["line"]),
        None if column is None or end is None else int(column),
        None if column is None or end is None else int(end),
        str(place.get("text", "")),
    )
