"""`velodrome load -c auto` and `-R auto`: searches in place of one load."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from velodrome.cli._numbered import Numbered
from velodrome.cli._trials import Trials
from velodrome.judge.search.connections import ConnectionSearch, enough_connections
from velodrome.judge.search.holding import Demands
from velodrome.judge.search.rate import RateSearch, highest_rate
from velodrome.model.condition import Condition
from velodrome.model.search import ConnectionsFound, Probe, RateFound, Sample
from velodrome.report import search_text

FIRST = 0.5
"""Of the answers a second that one connection gets: a rate that surely holds, if any does."""


class Search:
    """Tries, tells each trial on a line of standard error, and keeps the document of the best."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        payload: bytes,
        expected: bytes | None,
        seconds: float,
        conditions: Sequence[Condition] = (),
    ) -> None:
        self._trials = Trials(
            spec, payload, expected, seconds, Demands(must_not=tuple(conditions)), self._heard
        )
        self._numbered = Numbered()
        self.best: dict[str, Any] | None = None
        """Of the highest rate that held, or of the closed loop with the most answers."""

    def _heard(self, _event: Mapping[str, Any]) -> bool:
        return True

    def rate(self) -> RateFound:
        """Search the highest rate at which no condition holds and the server keeps up."""
        alone = self._trials.begin()
        return highest_rate(self._try_rate, RateSearch(first=max(1.0, FIRST * alone)))

    def _try_rate(self, rate: float) -> Probe:
        probe, document = self._trials.rate(rate)
        self._numbered.tell(search_text.probe(probe, document["latency_ms"]["due"]["p99"]))
        best = self.best["load"]["rate"] if self.best is not None else 0.0
        if probe.held and rate >= best:
            self.best = document
        return probe

    def connections(self) -> ConnectionsFound:
        """Search the connections at which throughput stops rising."""
        self._trials.begin()
        return enough_connections(self._try_connections, ConnectionSearch())

    def _try_connections(self, count: int) -> Sample:
        sample, document = self._trials.connections(count)
        self._numbered.tell(search_text.sample(sample, document["latency_ms"]["sent"]["p50"]))
        best = self.best["throughput_rps"] if self.best is not None else 0.0
        if not sample.spoilt and sample.rps > best:
            self.best = document
        return sample


def text(
    found: RateFound | ConnectionsFound, best: dict[str, Any] | None, conditions: Sequence[str], as_json: bool
) -> str:
    """Return what a search came to."""
    if as_json:
        return json.dumps(search_text.document(found, best, conditions))
    return "\n".join(search_text.lines(found, best, conditions))
