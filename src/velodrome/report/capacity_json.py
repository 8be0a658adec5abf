"""How much a contestant can do, for other programs (`velodrome/capacity/1`, docs/capacity.schema.json)."""

import math
from dataclasses import asdict
from typing import Any

from velodrome.model.measurement import Measurement
from velodrome.model.search import CAPACITY_SCHEMA, Knee, RateCapacity, RateFound
from velodrome.report import capacity_text


def document(found: RateCapacity | Knee, title: str) -> dict[str, Any]:
    """Return it as plain values."""
    search = found.found
    of_rate = isinstance(search, RateFound)
    searched = {
        key: value for key, value in asdict(search).items() if key not in {"probes", "samples", "ending"}
    }
    return {
        "schema": CAPACITY_SCHEMA,
        "sought": "rate" if of_rate else "connections",
        "of": title,
        "ending": search.ending.value,
        "conditions": list(found.conditions) if isinstance(found, RateCapacity) else [],
        **searched,
        "sentence": capacity_text.sentence(found),
        "bound": asdict(found.bottom) if found.bottom else None,
        "law": _finite(asdict(found.law)) if isinstance(found, Knee) and found.law else None,
        "tried": [
            asdict(one) for one in (search.probes if isinstance(search, RateFound) else search.samples)
        ],
        "best": of_measurement(found.best) if found.best else None,
        "trials": found.trials,
        "seconds": found.seconds,
    }


def of_measurement(measured: Measurement) -> dict[str, Any]:
    """Return what one load gave and cost, as a program reads it."""
    facts, server = measured.load, measured.server
    return {
        "load": asdict(measured.trial.load),
        "throughput_rps": facts.throughput_rps,
        "latency_ms": {"due": asdict(facts.due), "sent": asdict(facts.sent)},
        "errors": facts.requests - facts.ok,
        "requests": facts.requests,
        "cpu_us_per_request": measured.cpu_us_per_request,
        "server_cpus": server.cpu_s / facts.duration_s if facts.duration_s else None,
        "memory_bytes": measured.memory_bytes,
        "command": list(measured.command),
        "python": measured.python,
        "packages": dict(measured.packages),
        "flags": [{"kind": flag.kind.value, "sentence": flag.sentence} for flag in measured.flags],
    }


def _finite(value: Any) -> Any:
    """JSON has no infinity: an end that is not known is null."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
