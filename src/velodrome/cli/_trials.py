"""Short loads one after the other, for a search: each a rate or a number of connections, told with its limit."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from velodrome.cli._bottleneck import Watch
from velodrome.judge.load_figures import figures
from velodrome.judge.search.holding import Backlog, Demands, Tried, probe
from velodrome.model.bottleneck import Limit
from velodrome.model.errors import NothingAnsweredError
from velodrome.model.measurement import ended_rps
from velodrome.model.search import Probe, Sample
from velodrome.run import engine

WARMUP_S = 0.5
DRAIN_S = 0.5
RECOVERED, RECOVERS_S = 3.0, 10.0
"""After a rate that did not hold the next waits until an answer takes no longer than so many times what it did at
first, and so long at most."""

PACE = ("rate", "schedule", "duration_s", "requests")
"""Fields of a load that each trial sets anew."""
ALONE = {"connections": 1, "streams": 1}

OnEvent = Callable[[Mapping[str, Any]], bool]


@dataclass
class Trials:
    """Tries one URL again and again."""

    spec: Mapping[str, Any]
    """Of the load, without its pace and length."""
    payload: bytes
    expected: bytes | None
    seconds: float
    """Of each trial."""
    demands: Demands
    on_event: OnEvent
    alone_ms: float = 0.0
    """What an answer took before anything was tried."""

    def begin(self) -> float:
        """Ask once, then for half a second on one connection; return the answers a second.

        Raises NothingAnsweredError when none is right.
        """
        document = self._load(
            {"connections": 1, "streams": 1, "duration_s": 0.5, "warmup_s": 0.1}, self.on_event
        )
        mean = document["latency_ms"]["sent"]["mean"]
        if not document["ok"] or not mean:
            examples = document["examples"]
            raise NothingAnsweredError(self.spec["url"], str(examples[0]["text"]) if examples else "")
        self.alone_ms = mean
        return float(document["throughput_rps"])

    def rate(self, rate: float) -> tuple[Probe, dict[str, Any]]:
        """Try a rate, and give it up early where the backlog rises."""
        watched = Backlog(rate)
        seconds = self.demands.seconds(rate, self.seconds)
        length = {"duration_s": seconds, "warmup_s": max(self.spec["warmup_s"], WARMUP_S)}

        def heard(event: Mapping[str, Any]) -> bool:
            go_on = self.on_event(event)
            return (event["event"] != "tick" or watched.goes_on(event)) and go_on

        document = self._load({"rate": rate, **length}, heard)
        found = self._probe(rate, document, watched)
        if not found.held:
            self._recover()
        return found, document

    def connections(self, count: int) -> tuple[Sample, dict[str, Any]]:
        """Try a closed loop."""
        length = {"duration_s": self.seconds, "warmup_s": max(self.spec["warmup_s"], WARMUP_S)}
        document = self._load({"connections": count, **length}, self.on_event)
        limit = document["limit"]
        spoilt = limit["sentence"] if limit["at"] == Limit.GENERATOR else ""
        return Sample(count, document["throughput_rps"], spoilt), document

    def _load(self, changes: Mapping[str, Any], on_event: OnEvent) -> dict[str, Any]:
        given = {name: value for name, value in self.spec.items() if name not in PACE}
        spec = {**given, "drain_s": min(given["drain_s"], DRAIN_S), **changes}
        watch = Watch(spec, on_event)
        document = engine.load(spec, self.payload, self.expected, watch.event)
        document |= watch.conclude(document)
        return document

    def _probe(self, rate: float, document: Mapping[str, Any], watched: Backlog) -> Probe:
        limit = document["limit"]
        if limit["at"] in {Limit.GENERATOR, Limit.CONNECTIONS}:
            return Probe(rate, None, spoilt=limit["sentence"])
        ended = ended_rps(
            document["throughput_rps"],
            document["duration_s"],
            sum(second["errors"] for second in document["series"]),
            document["outcomes"],
        )
        return probe(
            Tried(rate, document["outcomes"], ended, figures(document), watched.rising), self.demands
        )

    def _recover(self) -> None:
        """Wait until the server has done with what it was asked too much."""
        until = time.monotonic() + RECOVERS_S
        spec = {**ALONE, "requests": 3, "warmup_s": 0.0, "timeout_s": RECOVERS_S}
        while time.monotonic() < until:
            document = self._load(spec, self.on_event)
            slowest = document["latency_ms"]["sent"]["max"]
            if document["ok"] == document["requests"] and slowest <= max(RECOVERED * self.alone_ms, 1.0):
                return
            time.sleep(0.1)
