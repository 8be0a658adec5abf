"""A load generator of thirty lines that shares nothing with the engine: one connection, closed loop."""

import http.client
import os
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from tests.run import made

from velodrome.model.load import Load
from velodrome.model.measurement import LoadFacts, Placement
from velodrome.run.drivers.driver import Driver, LoadEvent, OnEvent, Target


@dataclass
class PlainDriver:
    """`seen` keeps the loads that it ran."""

    name: str = "plain"
    seen: list[tuple[Load, Target]] = field(default_factory=list)

    def run(self, load: Load, target: Target, on_event: OnEvent) -> LoadFacts:
        self.seen.append((load, target))
        parts = urlsplit(target.url)
        outcomes: Counter[str] = Counter()
        going = on_event(LoadEvent("started", {"pid": os.getpid()}))
        going = on_event(LoadEvent("measuring", {"monotonic_ns": time.monotonic_ns()})) and going
        began = time.monotonic()
        while going and time.monotonic() < began + load.duration_s:
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=1)
            try:
                connection.request(target.method, "/", target.body or None)
                answer = connection.getresponse()
                outcomes["ok" if answer.read() == target.expect_body else "wrong_body"] += 1
            except OSError:
                outcomes["reset"] += 1
            finally:
                connection.close()
            going = on_event(LoadEvent("tick", {}))
        on_event(LoadEvent("span_ended", {"monotonic_ns": time.monotonic_ns()}))
        took = time.monotonic() - began
        return replace(
            made.LOAD_FACTS,
            requests=outcomes.total(),
            ok=outcomes["ok"],
            duration_s=took,
            throughput_rps=outcomes["ok"] / took,
            outcomes=dict(outcomes),
        )


def plain(name: str, placed: Placement, seed: int) -> Driver:
    return PlainDriver()
