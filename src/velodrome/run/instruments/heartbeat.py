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
from velodrome.guest.injected.pauses import PAUSE
from velodrome.model.diagnosis import Collection, Sampled, Stall, Timeline
from velodrome.model.measurement import Measurement
from velodrome.model.symptoms import Called, Collected, Frame, HeldUp, Hop, Run, Statement, Waits, Watched
from velodrome.run.drivers.driver import LoadEvent
from velodrome.run.instruments import processes
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
    helpers = processes.helpers(server)
    lines = [*server.read_lines(without=helpers), *server.read_lines("gc", without=helpers)]
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
    seen = Seen(begin, end, Sent(*(load or (begin, end))))
    for line in lines:
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            seen.add(line)
    return seen.watched(rps)


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
    """Statements to databases, and calls in threads, that heartbeats reported of a load, put together."""

    begin: float
    end: float
    first: float = math.inf
    last: float = -math.inf
    sums: dict[tuple[str, str, str, str], list[float]] = field(default_factory=dict)
    hopping: dict[tuple[str, str, str, bool], list[float]] = field(default_factory=dict)

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
        for one in (*line.get("statements", ()), *line.get("pauses", ())):
            place = f"{one['file']}:{int(one['line'])}"
            sums = self.sums.setdefault(
                (str(one["statement"]), place, str(one["function"]), str(one["text"])), [0.0, 0.0]
            )
            sums[0] += float(one["seconds"])
            sums[1] += int(one["times"])
        for one in line.get("hops", ()):
            place = f"{one['file']}:{int(one['line'])}"
            key = (place, str(one["function"]), str(one["text"]), bool(one.get("yields")))
            sums = self.hopping.setdefault(key, [0.0, 0.0, 0.0])
            for number, name in enumerate(("seconds", "cpu", "times")):
                sums[number] += float(one[name])

    def statements(self, rps: float) -> tuple[Statement, ...]:
        """Return them, the longest first, of a load with so many requests a second."""
        requests = max(rps * self.span_s, 1.0)
        found = [Statement(*key, times / requests, seconds) for key, (seconds, times) in self.sums.items()]
        return tuple(sorted(found, key=lambda statement: -statement.seconds)[:STACKS])

    def hops(self, rps: float) -> tuple[Hop, ...]:
        """Return the calls in threads in the same way."""
        requests = max(rps * self.span_s, 1.0)
        longest = sorted(self.hopping.items(), key=lambda item: -item[1][0])[:STACKS]
        return tuple(
            Hop(
                place,
                function,
                text,
                times / requests,
                1000 * seconds / times,
                1000 * cpu_s / times,
                yields=yields,
            )
            for (place, function, text, yields), (seconds, cpu_s, times) in longest
            if times
        )


@dataclass
class Seen:
    """What heartbeats reported from `begin` to `end`, put together."""

    begin: float
    end: float
    sent: Sent
    garbage: Garbage = field(default_factory=Garbage)
    late_s: float = 0.0
    others_s: float = 0.0
    held: dict[tuple[Frame, ...], list[float]] = field(default_factory=dict)
    seconds: float = 0.0
    """Of all processes."""
    looped_s: float = 0.0
    """Of that, with an event loop."""
    looked_s: float = 0.0
    """Of that, in what began after `begin`."""
    loop: str = ""
    samples: dict[str, float] = field(default_factory=dict)
    computing: dict[str, float] = field(default_factory=dict)
    calls: dict[tuple[str, str, str, str], float] = field(default_factory=dict)
    threads: dict[str, int] = field(default_factory=dict)
    libraries: set[str] = field(default_factory=set)
    limited: bool = False
    left_behind: set[str] = field(default_factory=set)
    first: float = math.inf
    last: float = -math.inf
    """Of what began after `begin`, when it began and ended."""
    waits: dict[str, Waits] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    connects: dict[str, int] = field(default_factory=dict)
    ports: int = 0
    ended: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """How often the app's own code ended a process, by place."""

    def add(self, line: Mapping[str, Any]) -> None:
        """Take in a line of this time.

        Raises KeyError, TypeError, ValueError or AttributeError where it is none of theirs.
        """
        if not self.begin <= float(line["at"]) <= self.end:
            return
        if "stall" in line:
            self.add_stall(line)
        elif "gc" in line:
            self.garbage.add(line)
        elif "seen" in line:
            self.add_seen(line)
        elif "ended" in line:
            place = (f"{line['file']}:{int(line['line'])}", str(line["function"]), str(line["text"]))
            self.ended[place] = self.ended.get(place, 0) + 1

    def add_stall(self, line: Mapping[str, Any]) -> None:
        """Take in a time for which the loop was late."""
        self.late_s += float(line["stall"])
        self.others_s += float(line.get("others_s", 0.0))
        for place in line["places"]:
            stack = tuple(_frame(one) for one in place["frames"][:DEPTH])
            if stack:
                sums = self.held.setdefault(stack, [0.0, 0.0, 0.0, 0.0])
                for number, name in enumerate(("seconds", "ran_s", "blocked_s")):
                    sums[number] += float(place[name])
                sums[3] += 1

    def add_seen(self, line: Mapping[str, Any]) -> None:
        """Take in what was seen of one process since its line before."""
        seconds = float(line["seen"])
        self.seconds += seconds
        self.looped_s += seconds if line["loop"] else 0.0
        self.loop = str(line["loop"] or self.loop)
        _add_each(self.samples, line["samples"])
        _add_each(self.computing, line.get("computing", {}))
        for call in line.get("calls", ()):
            self.add_call(call)
        self.sent.add(line)
        _raise_each(self.threads, line["threads"])
        self.libraries |= set(map(str, line["libraries"]))
        self.limited = self.limited or bool(line.get("limited"))
        self.left_behind |= set(map(str, line.get("left_behind", ())))
        if float(line["at"]) - seconds >= self.begin:
            self.add_within(line)

    def add_within(self, line: Mapping[str, Any]) -> None:
        """Take in what counts only where it began in this time: who waits, and connections that are opened."""
        seconds, at = float(line["seen"]), float(line["at"])
        self.looked_s += seconds if line["loop"] else 0.0
        self.first, self.last = min(self.first, at - seconds), max(self.last, at)
        _raise_each(self.waiting, line.get("waiting", {}))
        for name, count in line.get("connects", {}).items():
            self.connects[str(name)] = self.connects.get(str(name), 0) + int(count)
        self.ports = max(self.ports, int(line.get("ports", 0)))
        for place in line.get("waits", ()):
            self.add_wait(place)

    def add_call(self, call: Mapping[str, Any]) -> None:
        """Take in where from something is called that one of `guest/injected/marks.py` stands for."""
        place = f"{call['file']}:{int(call['line'])}"
        key = (str(call["mark"]), place, str(call["function"]), str(call["text"]))
        self.calls[key] = self.calls.get(key, 0.0) + float(call["seconds"])

    def add_wait(self, place: Mapping[str, Any]) -> None:
        """Take in where tasks wait."""
        run = place["run"]
        column = f":{place['column']}" if place.get("column") is not None else ""
        inner = bool(place["inner"])
        file, key = str(place["file"]), f"{place['file']}:{place['line']}{column}{'' if inner else ' around'}"
        before, seconds = self.waits.get(key), float(place["seconds"])
        locked_s = seconds if place.get("locks") else 0.0
        self.waits[key] = Waits(
            f"{file}:{int(place['line'])}",
            str(place["function"]),
            str(place["text"]),
            seconds + (before.seconds if before else 0.0),
            max(int(place["most"]), before.most if before else 0),
            inner,
            _run(file, run) if run else None,
            locked_s + (before.locked_s if before else 0.0),
            str(place.get("holds") or (before.holds if before else "")),
        )

    def watched(self, rps: float) -> Watched:
        """Return all of it, of a load with so many requests a second."""
        spent_in = dict(self.samples)
        every = spent_in.pop("all", 0.0)
        called = _called(self.calls, {**spent_in, OWN: every})
        # A master that only looks after its workers has no loop, and no share in their time.
        served = self.looped_s or self.seconds
        held_up = [
            HeldUp(stack, took, ran, blocked, int(times))
            for stack, (took, ran, blocked, times) in self.held.items()
        ]
        collected, sent = self.garbage.most(self.end - self.begin), self.sent.statements(rps)
        ends = sum(self.ended.values())
        ended = sorted(self.ended.items(), key=lambda item: -item[1])
        return Watched(
            seconds=served,
            loop=self.loop,
            late_s=self.late_s,
            held_up=tuple(sorted(held_up, key=lambda one: -one.seconds)[:STACKS]),
            collections_s=collected.collections_s,
            longest_collection_s=collected.longest_s,
            shares={name: spent / every for name, spent in spent_in.items() if every},
            at_once={name: spent / served for name, spent in spent_in.items() if served},
            callers={name: tuple(places) for name, places in called.items()},
            lines=tuple(called.get(OWN, ())[:LINES]),
            threads=self.threads,
            libraries=frozenset(self.libraries),
            rps=rps,
            others_s=self.others_s,
            looked_s=self.looked_s,
            waits=tuple(sorted(self.waits.values(), key=lambda wait: -wait.seconds)[:STACKS]),
            waiting=self.waiting,
            statements=tuple(one for one in sent if one.normalized != PAUSE),
            pauses=tuple(one for one in sent if one.normalized == PAUSE),
            hops=self.sent.hops(rps),
            followed_s=self.sent.span_s,
            connects=self.connects,
            ports=self.ports,
            connected_s=max(self.last - self.first, 0.0),
            left_behind=frozenset(self.left_behind),
            limited=self.limited,
            computing={name: spent / served for name, spent in self.computing.items() if served},
            lasted_s=collected.seconds,
            ended=tuple(Called(*place, times / ends) for place, times in ended[:STACKS]),
            ends=ends,
        )


def _add_each(sums: dict[str, float], line: Mapping[str, float]) -> None:
    for name, seconds in line.items():
        sums[str(name)] = sums.get(str(name), 0.0) + float(seconds)


def _raise_each(most: dict[str, int], line: Mapping[str, int]) -> None:
    for name, count in line.items():
        most[str(name)] = max(most.get(str(name), 0), int(count))


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


def _run(file: str, run: Mapping[str, Any]) -> Run:
    return Run(
        file,
        int(run["line"]),
        int(run["end_line"]),
        int(run["awaits"]),
        bool(run["loops"]),
        str(run["before"]),
        str(run["after"]),
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
