"""Loads of two seconds made up by what a request takes, and the document of one of a URL."""

from dataclasses import replace

from tests.run.made import LOAD_FACTS, measurement, trial

from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import Latency, Measurement

FULL = Load(Closed(64), 2.0)
SLOW = Load(Open(100, "constant"), 2.0)
DOCUMENT = {
    "ok": 4000,
    "fastest_ms": 0.5,
    "latency_ms": {"sent": {"p50": 42.5, "mean": 42.4}},
    "connections": {"opened": 50},
    "load": {"protocol": "http"},
    "server": {"busiest_cpu_s": 0.3, "span_s": 3.0},
}


def loaded(
    load: Load,
    rps: float,
    ms: float,
    *,
    cpus: float = 0.2,
    mean: float | None = None,
    fastest: float | None = None,
    workers: int = 1,
    outcomes: dict[str, int] | None = None,
) -> Measurement:
    """Return a load of two seconds in which a request took so long, from sent."""
    of = trial(load=load)
    of = replace(of, contestant=replace(of.contestant, knobs={"workers": workers}))
    count = round(2 * rps)
    latency = Latency(mean or ms, ms, ms, ms, ms, ms, ms, ms)
    failed = sum((outcomes or {}).values())
    facts = replace(
        LOAD_FACTS,
        requests=count + failed,
        ok=count,
        duration_s=2.0,
        throughput_rps=rps,
        outcomes={"ok": count, **(outcomes or {})},
        sent=latency,
        due=latency,
        mean_in_flight=rps * ms / 1000,
        fastest_ms=fastest,
    )
    found = measurement(of)
    return replace(found, load=facts, server=replace(found.server, cpu_s=2 * cpus), flags=())
