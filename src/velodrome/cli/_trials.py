"""Short loads one after the other, for a search: each a rate or a number of connections, told with its limit."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from velodrome.cli._bottleneck import Watch
from velodrome.judge.load_figures import figures, requests_needed
from velodrome.judge.search import backlog
from velodrome.model import quantity
from velodrome.model.bottleneck import Limit
from velodrome.model.condition import Condition, Decided, comparisons, decide
from velodrome.model.errors import NothingAnsweredError
from velodrome.model.search import Probe, Sample
from velodrome.report.conditions import sentence
from velodrome.run import engine
from velodrome.run.engine import Event

WARMUP_S = 0.5
LONGEST_S = 60.0
"""Of one trial, however many requests a percentile needs at a low rate."""
SPARE = 1.3
"""So many times the requests a percentile needs are asked."""
DRAIN_S = 0.5
FELL_BEHIND = 0.95
"""An open loop that got less than this part of its rate was asked for too much, with or without conditions."""
FAILING = 0.01
"""Without conditions a rate does not hold if so many requests fail."""
RECOVERED, RECOVERS_S = 3.0, 10.0
"""After a rate that did not hold the next waits until an answer takes no longer than so many times what it did at
first, and so long at most."""

PACE = ("rate", "schedule", "duration_s", "requests")
"""Fields of a load that each trial sets anew."""
ALONE = {"connections": 1, "streams": 1}

OnEvent = Callable[[Event], bool]


@dataclass
class Trials:
    """Tries one URL again and again."""

    spec: Mapping[str, Any]
    """Of the load, without its pace and length."""
    payload: bytes
    expected: bytes | None
    seconds: float
    """Of each trial."""
    conditions: Sequence[Condition]
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
        rising = _Rising(rate, self.on_event)
        document = self._load({"rate": rate, **self._length(rate)}, rising.event)
        probe = self._probe(rate, document, rising.found)
        if not probe.held:
            self._recover()
        return probe, document

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
        return document | watch.conclude(document)

    def _length(self, rate: float) -> dict[str, float]:
        """Return how long a trial is: long enough for the percentiles that conditions name, if that is bearable."""
        named = (one.metric for condition in self.conditions for one in comparisons(condition))
        needed = max((requests_needed(metric) for metric in named), default=1)
        seconds = max(self.seconds, min(SPARE * needed / rate, LONGEST_S))
        return {"duration_s": seconds, "warmup_s": max(self.spec["warmup_s"], WARMUP_S)}

    def _probe(self, rate: float, document: Mapping[str, Any], rising: backlog.Slope | None) -> Probe:
        limit = document["limit"]
        if limit["at"] in {Limit.GENERATOR, Limit.CONNECTIONS}:
            return Probe(rate, None, spoilt=limit["sentence"])
        look_up = figures(document)
        found = [decide(condition, look_up) for condition in self.conditions]
        broken = next((_said(one) for one in found if one.holds), None) or self._overdone(
            rate, document, rising
        )
        if broken is not None:
            return Probe(rate, False, broken)
        untold = next((_said(one) for one in found if one.holds is None), None)
        return Probe(rate, None, untold) if untold is not None else Probe(rate, True)

    def _overdone(self, rate: float, document: Mapping[str, Any], rising: backlog.Slope | None) -> str | None:
        """Return how a rate shows to be too high, whatever the conditions."""
        if rising is not None:
            return f"the backlog rose by {quantity.rate(rising.per_s)}"
        if document["throughput_rps"] < FELL_BEHIND * rate:
            return f"only {quantity.rate(document['throughput_rps'])} were answered right"
        failed = 1 - document["ok"] / max(document["requests"], 1)
        if not self.conditions and failed > FAILING:
            return f"{quantity.percent(failed)} of the requests failed"
        return None

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


class _Rising:
    """Ends a load whose backlog rises."""

    def __init__(self, rate: float, on_event: OnEvent) -> None:
        self._rate, self._on_event = rate, on_event
        self._seen: list[tuple[float, float]] = []
        self._last: tuple[int, int, int] | None = None
        self.found: backlog.Slope | None = None

    def event(self, event: Event) -> bool:
        go_on = self._on_event(event)
        if event["event"] != "tick" or event["phase"] != "measure" or self.found is not None:
            return go_on
        # Ticks are more frequent than news.
        news = (event["in_flight"], event["waiting"], event["requests"])
        if news != self._last:
            self._last = news
            self._seen.append((event["at_s"], float(event["in_flight"] + event["waiting"])))
            self.found = backlog.rises(self._seen, self._rate)
        return go_on and self.found is None


def _said(decided: Decided) -> str:
    """Return what decided a condition, without the verdict: that is another here."""
    return sentence(decided).partition(". ")[2].removesuffix(".")
