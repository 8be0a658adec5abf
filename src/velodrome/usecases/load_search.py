"""A search at one URL, by short loads one after the other: each a rate or a number of connections.

    found, best = search("rate", work, Demands(must_not=conditions), seconds=3.0, follower=follower)

`best` is the document of the highest rate that held, or of the closed loop with the most right answers.

Of a server that velodrome itself serves, `capacity.py` searches it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

from velodrome.judge.load_figures import beyond, figures
from velodrome.judge.search.connections import ConnectionSearch, enough_connections
from velodrome.judge.search.holding import (
    DRAIN_S,
    WARMUP_S,
    Backlog,
    Demands,
    OneByOne,
    Tried,
    enough_s,
    in_doubt,
    probe,
    warmup_s,
    wrong_anyway,
)
from velodrome.judge.search.rate import FIRST, Measuring, RateSearch, highest_rate
from velodrome.model.bottleneck import Limit
from velodrome.model.errors import NothingAnsweredError
from velodrome.model.load import Open
from velodrome.model.measurement import ended_rps
from velodrome.model.search import ConnectionsFound, Ending, Probe, RateFound, Sample
from velodrome.usecases.bench import RECOVERY_REQUESTS, wait_for_recovery
from velodrome.usecases.load import Work, beside_idle, measure

if TYPE_CHECKING:
    from velodrome.usecases.load import Document, OnEvent

PATIENCE_S = 10.0
"""Until the server has done with too much: it cannot be served anew, as a server of velodrome's own can."""
UNPACED: Mapping[str, Any] = {"rate": None, "schedule": (), "duration_s": None, "requests": None}
"""Fields of a load that each trial sets anew."""
ALONE = {"connections": 1, "streams": 1}
ALONE_S = 0.5
"""How long one connection sends requests, to show what a request takes when nobody is before it."""
SAY = "--fail-if 'errors > {limit}'"
"""How a condition that allows wrong answers is written here."""


class Follower(Protocol):
    """Whoever shows a search while it runs."""

    def tried(self, probe: Probe, document: Document) -> None:
        """Report each rate that was tried."""

    def sampled(self, sample: Sample, document: Document) -> None:
        """Report each closed loop that was run."""


def search(
    wanted: Literal["rate", "connections"], work: Work, demands: Demands, seconds: float, follower: Follower
) -> tuple[RateFound | ConnectionsFound, Document | None]:
    """Search the highest rate at which what is demanded holds, or the connections at which throughput stops rising.

    Pace and length of `work` do not count; each trial takes `seconds`. Raises NothingAnsweredError when nothing is
    answered right.
    """
    searching = _Search(work, demands, seconds, follower)
    with beside_idle(work):
        found = searching.rate() if wanted == "rate" else searching.connections()
    return found, searching.best


class _Search:
    """Tries one URL again and again, and keeps the document of the best."""

    def __init__(self, work: Work, demands: Demands, seconds: float, follower: Follower) -> None:
        self._spec = work.spec
        self._demands, self._seconds, self._follower = demands, seconds, follower
        self._alone_ms = 0.0
        self._one_by_one = OneByOne()
        self.best: Document | None = None
        """Of the highest rate that held, or of the closed loop with the most answers."""

    def rate(self) -> RateFound:
        """Search the highest rate at which what is demanded holds and the server keeps up.

        Raises NothingAnsweredError when nothing is answered right.
        """
        alone_rps = self._alone()
        if in_doubt(self._one_by_one, self._demands.every):
            self._alone(enough_s(self._alone_ms, ALONE_S))
        if why := wrong_anyway(self._one_by_one, self._demands.every, SAY):
            return RateFound(Ending.NEVER, None, why, ())
        # The server is somebody else's and cannot be booted again: the interval is of this boot.
        measuring = Measuring(self._try_rate, self._try_near)
        return highest_rate(measuring, RateSearch(first=max(1.0, FIRST * alone_rps), boots=1))

    def connections(self) -> ConnectionsFound:
        """Search the connections at which throughput stops rising. Raises NothingAnsweredError."""
        self._alone()
        return enough_connections(self._try_connections, ConnectionSearch())

    def _alone(self, seconds: float = ALONE_S) -> float:
        """Send requests on one connection, one after the other; return the answers a second."""
        document = self._load({**ALONE, "duration_s": seconds, "warmup_s": 0.1})
        self._one_by_one = self._one_by_one.and_of(document["outcomes"])
        mean = document["latency_ms"]["sent"]["mean"]
        if not document["ok"] or not mean:
            examples = document["examples"]
            raise NothingAnsweredError(self._spec.url, str(examples[0]["text"]) if examples else "")
        self._alone_ms = mean
        return float(document["throughput_rps"])

    def _try_near(self, rate: float) -> Probe:
        return self._try_rate(rate, self._demands.seconds_near(rate, self._seconds))

    def _try_rate(self, rate: float, seconds: float | None = None) -> Probe:
        """Try a rate, and give it up early where the backlog rises."""
        watched = Backlog(rate)
        seconds = seconds or self._demands.seconds(rate, self._seconds)
        document = self._load(
            {"rate": rate, "duration_s": seconds, "warmup_s": max(self._spec.warmup_s, warmup_s(seconds))},
            lambda event: event["event"] != "tick" or watched.goes_on(event),
        )
        found = self._probe(rate, document, watched)
        if not found.held:
            wait_for_recovery(self._few, self._alone_ms, PATIENCE_S)
        self._follower.tried(found, document)
        best = self.best["load"]["rate"] if self.best is not None else 0.0
        if found.held and rate >= best:
            self.best = document
        return found

    def _try_connections(self, count: int) -> Sample:
        length = {"duration_s": self._seconds, "warmup_s": max(self._spec.warmup_s, WARMUP_S)}
        document = self._load({"connections": count, **length})
        limit = document["limit"]
        spoilt = limit["sentence"] if limit["at"] == Limit.GENERATOR else ""
        sample = Sample(count, document["throughput_rps"], spoilt)
        self._follower.sampled(sample, document)
        best = self.best["throughput_rps"] if self.best is not None else 0.0
        if not sample.spoilt and sample.rps > best:
            self.best = document
        return sample

    def _load(self, changes: Mapping[str, Any], on_event: OnEvent = lambda _: True) -> Document:
        drain_s = min(self._spec.drain_s, DRAIN_S)
        return measure(self._spec.changed(**{**UNPACED, "drain_s": drain_s, **changes}), on_event)

    def _probe(self, rate: float, document: Document, watched: Backlog) -> Probe:
        limit = document["limit"]
        if limit["at"] in {Limit.GENERATOR, Limit.CONNECTIONS}:
            return Probe(rate, None, spoilt=limit["sentence"])
        ended = ended_rps(
            document["throughput_rps"],
            document["duration_s"],
            sum(second["errors"] for second in document["series"]),
            document["outcomes"],
        )
        pace = Open(rate, document["load"]["arrivals"])
        tried = Tried(
            rate,
            document["outcomes"],
            ended,
            figures(document),
            watched.rising,
            seconds=document["duration_s"],
            backlog=watched.slope,
            beyond=beyond(document),
            scatter=pace.scatter(document["duration_s"]),
        )
        return probe(tried, self._demands)

    def _few(self, _seconds: float) -> tuple[int, float]:
        document = self._load(
            {**ALONE, "requests": RECOVERY_REQUESTS, "warmup_s": 0.0, "timeout_s": PATIENCE_S}
        )
        return document["ok"], document["latency_ms"]["sent"]["max"] or 0.0
