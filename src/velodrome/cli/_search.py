"""`velodrome load -c auto` and `-R auto`: searches in place of one load."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from velodrome.cli._bottleneck import Watch
from velodrome.cli._carrying import Work
from velodrome.cli._numbered import Numbered
from velodrome.judge.search.holding import Demands
from velodrome.model.condition import Condition
from velodrome.model.search import ConnectionsFound, Probe, RateFound, Sample
from velodrome.report import searches
from velodrome.run import engine
from velodrome.track.searching import Document, Loading, OnEvent, Search


class Told(Numbered):
    """Tells each trial on a line of standard error."""

    def tried(self, probe: Probe, document: Document) -> None:
        """Tell a rate."""
        self.tell(searches.probe_line(probe, document["latency_ms"]["due"]["p99"]))

    def sampled(self, sample: Sample, document: Document) -> None:
        """Tell a closed loop."""
        self.tell(searches.sample_line(sample, document["latency_ms"]["sent"]["p50"]))


def searching(work: Work, seconds: float, conditions: Sequence[Condition]) -> Search:
    """Return the search of what a command line asks; each trial is told with where its limit was."""
    return Search(work.spec, _loading(work), Demands(must_not=tuple(conditions)), seconds, Told())


def _loading(work: Work) -> Loading:
    def load(spec: Mapping[str, Any], heard: OnEvent) -> Document:
        watch = Watch(spec, heard)
        document = engine.load(spec, work.payload, work.right, watch.event)
        return document | watch.conclude(document)

    return load


def text(
    found: RateFound | ConnectionsFound, best: dict[str, Any] | None, conditions: Sequence[str], as_json: bool
) -> str:
    """Return what a search came to."""
    if as_json:
        return json.dumps(searches.search_document(found, best, conditions))
    return "\n".join(searches.search_lines(found, best, conditions))
