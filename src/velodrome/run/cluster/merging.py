"""What several agents measured, as one document: counts are added, and percentiles are read from added histograms.

No percentile is averaged. The engine puts the histogram beside every set of percentiles of a part, so each of them has
a sum. What cannot be had from the parts is missing: of a closed loop the short-term fairness and the median by
connections, which look at all connections at once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from velodrome.run import engine

Document = dict[str, Any]

TOO_FEW = 1000
"""Below, the 99th percentile has fewer than ten requests beyond it (`crates/engine/src/results.rs`)."""
MOST_EXAMPLES = 5
PRIORITIES = ("real-time", "given-up", "normal")
"""How the threads of an engine stand with the scheduler, the best first."""


def merge_documents(parts: Sequence[Mapping[str, Any]]) -> Document:
    """Return the document of a whole load. Raises ValueError or KeyError for what is no document of a part."""
    first = parts[0]
    duration = max(part["duration_s"] for part in parts)
    in_span = sum(round(part["throughput_rps"] * part["duration_s"]) for part in parts)
    flags = {flag for part in parts for flag in part["flags"]} - {"too-short"}
    latency = _both([part["latency_ms"] for part in parts])
    lag = _sum([part["lag_ms"] for part in parts])
    phases = {name: _some([part["phases_ms"][name] for part in parts], _sum) for name in first["phases_ms"]}
    deliveries = _some([part["deliveries"] for part in parts], _deliveries)
    due = engine.sum_of_histograms([(part["hdr"]["due"], None) for part in parts])
    assert due is not None
    if _add(part["requests"] for part in parts) < TOO_FEW:
        flags.add("too-short")
    return {
        "schema": first["schema"],
        "requests": _add(part["requests"] for part in parts),
        "ok": _add(part["ok"] for part in parts),
        "duration_s": duration,
        "throughput_rps": in_span / max(duration, 1e-9),
        "outcomes": _counts([part["outcomes"] for part in parts]),
        "latency_ms": _bare(latency),
        "first_message_ms": _bare(_some([part["first_message_ms"] for part in parts], _both)),
        "deliveries": _bare(deliveries),
        "lag_ms": _bare(lag),
        "phases_ms": _bare(phases),
        "fastest_ms": _least(part["fastest_ms"] for part in parts),
        "connections": _counts([part["connections"] for part in parts]),
        "fairness": _some([part.get("fairness") for part in parts], _fairness),
        "streams": _counts([part["streams"] for part in parts]),
        "mean_in_flight": _in_flight(parts, duration),
        "answered_before_read": _add(part["answered_before_read"] for part in parts),
        "resent": _add(part["resent"] for part in parts),
        "generator": _generator([part["generator"] for part in parts]),
        "sockets": _sockets([part["sockets"] for part in parts]),
        "flags": sorted(flags),
        "series": series([part["series"] for part in parts]),
        "steps": [_step(rows) for rows in zip(*(part["steps"] for part in parts), strict=False)],
        "by_request": [_request(rows) for rows in zip(*(part["by_request"] for part in parts), strict=True)],
        "hdr": {
            "due": due[0],
            "sent": _histogram([part["hdr"]["sent"] for part in parts]),
            **{
                name: _histogram([part["hdr"][name] for part in parts])
                for name in first["hdr"]
                if name not in ("due", "sent")
            },
        },
        "load": first["load"] | {"connections": _add(part["load"]["connections"] for part in parts)},
        "examples": _examples(parts),
    }


def _add(numbers: Iterable[Any]) -> Any:
    return sum(numbers)


def _least(numbers: Iterable[float | None]) -> float | None:
    return min((number for number in numbers if number is not None), default=None)


def _some(rows: Sequence[Any], join: Callable[[list[Any]], Any]) -> Any:
    """Join what is there; None where nothing is."""
    had = [row for row in rows if row is not None]
    return join(had) if had else None


def _sum(rows: Sequence[Mapping[str, Any]]) -> Document:
    """Add up percentiles by their histograms."""
    had = [(row["hdr"], row["max"]) for row in rows if row.get("hdr")]
    found = engine.sum_of_histograms(had)
    if found is None:
        return {name: None for name in rows[0] if name != "hdr"}
    return {**found[1], "hdr": found[0]}


def _both(rows: Sequence[Mapping[str, Any]]) -> Document:
    return {since: _sum([row[since] for row in rows]) for since in ("due", "sent")}


def _bare(plain: Any) -> Any:
    """Return percentiles without the histograms beside them."""
    if isinstance(plain, Mapping):
        return {name: _bare(value) for name, value in plain.items() if name != "hdr"}
    return plain


def _histogram(texts: Sequence[str | None]) -> str | None:
    found = engine.sum_of_histograms([(text, None) for text in texts if text is not None])
    return None if found is None else found[0]


def _counts(rows: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: sum(row.get(name, 0) for row in rows) for name in names}


def _deliveries(rows: Sequence[Mapping[str, Any]]) -> Document:
    counts = _counts([{name: row[name] for name in row if name != "latency_ms"} for row in rows])
    return {**counts, "latency_ms": _both([row["latency_ms"] for row in rows])}


def _fairness(rows: Sequence[Mapping[str, Any]]) -> Document:
    """Join Jain's index, (Σx)² / (n Σx²), of which each part has its own; what else looks at all is missing."""
    connections, answers = (_add(row[name] for row in rows) for name in ("connections", "answers"))
    squares = sum(
        row["answers"] ** 2 / (row["connections"] * row["jain"]) for row in rows if row["jain"] is not None
    )
    timed = [row for row in rows if row["mean_ms"] is not None]
    whole = _add(row["answers"] for row in timed)
    return {
        "connections": connections,
        "answers": answers,
        "least": min(row["least"] for row in rows),
        "most": max(row["most"] for row in rows),
        "jain": answers**2 / (connections * squares) if squares and connections else None,
        "jain_short_term": None,
        "mean_ms": _add(row["mean_ms"] * row["answers"] for row in timed) / whole if whole else None,
        "median_connection_ms": None,
    }


def _in_flight(parts: Sequence[Mapping[str, Any]], duration: float) -> float | None:
    if any(part["mean_in_flight"] is None for part in parts) or duration <= 0:
        return None
    return float(_add(part["mean_in_flight"] * part["duration_s"] for part in parts)) / duration


def _generator(rows: Sequence[Mapping[str, Any]]) -> Document:
    queued = [row["run_queue_s"] for row in rows]
    transports = dict.fromkeys(row["transport"] for row in rows)
    return dict(rows[0]) | {
        **{
            name: _add(row[name] for row in rows)
            for name in ("cpu_s", "cpu_user_s", "cpu_sys_s", "awake_s", "dropped_bodies", "threads")
        },
        "transport": "+".join(transports),
        "run_queue_s": None if None in queued else sum(queued),
        "priority": max((row["priority"] for row in rows), key=PRIORITIES.index),
        "unread_bytes": max((row["unread_bytes"] for row in rows if row["unread_bytes"]), default=None),
        "saturated": any(row["saturated"] for row in rows),
        "debug": any(row["debug"] for row in rows),
    }


def _sockets(rows: Sequence[Mapping[str, Any]]) -> Document:
    return {
        "looked": _add(row["looked"] for row in rows),
        "with_unsent": _add(row["with_unsent"] for row in rows),
        "unsent_bytes_max": max(row["unsent_bytes_max"] for row in rows),
        "rtt_us": _least(row["rtt_us"] for row in rows),
        "retransmitted": _add(row["retransmitted"] for row in rows),
    }


def series(parts: Sequence[Sequence[Mapping[str, Any]]]) -> list[Document]:
    """Join seconds by when they began; each agent's own clock counts them from the common beginning."""
    by_second: dict[float, list[Mapping[str, Any]]] = {}
    for part in parts:
        for second in part:
            by_second.setdefault(second["at_s"], []).append(second)
    found = []
    for at, rows in sorted(by_second.items()):
        counts = ("requests", "ok", "errors", "in_flight", "waiting")
        found.append(
            {
                "at_s": at,
                **{name: _add(row[name] for row in rows) for name in counts},
                **_coarse(rows, ("p50_ms", "p99_ms", "max_ms")),
            }
        )
    return found


def _coarse(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Document:
    """Return percentiles of slices or seconds of all parts."""
    summed = engine.sum_of_histograms([(row["hdr"], None) for row in rows if row.get("hdr")])
    percentiles = summed[1] if summed else {}
    return {name: percentiles.get(name.removesuffix("_ms")) for name in names}


def _step(rows: Sequence[Mapping[str, Any]]) -> Document:
    first = rows[0]
    return dict(first) | {
        "requests": _add(row["requests"] for row in rows),
        "ok": _add(row["ok"] for row in rows),
        "throughput_rps": _add(row["throughput_rps"] for row in rows),
        "outcomes": _counts([row["outcomes"] for row in rows]),
        "latency_ms": _bare(_both([row["latency_ms"] for row in rows])),
        "lag_ms": _bare(_sum([row["lag_ms"] for row in rows])),
    }


def _request(rows: Sequence[Mapping[str, Any]]) -> Document:
    return dict(rows[0]) | {
        "requests": _add(row["requests"] for row in rows),
        "ok": _add(row["ok"] for row in rows),
        "outcomes": _counts([row["outcomes"] for row in rows]),
        "latency_ms": _bare(_both([row["latency_ms"] for row in rows])),
    }


def _examples(parts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for example in (each for part in parts for each in part["examples"]):
        if example not in found:
            found.append(example)
    return found[:MOST_EXAMPLES]


def tick(ticks: Sequence[Mapping[str, Any]]) -> Document:
    """Return how the whole load is going, by the last tick of each agent."""
    lasts = [each["last_second"] for each in ticks]
    counts = ("requests", "ok", "errors", "in_flight", "waiting", "rps")
    return {
        "event": "tick",
        "phase": ticks[0]["phase"],
        "at_s": min(each["at_s"] for each in ticks),
        **{name: _add(each[name] for each in ticks) for name in counts},
        **_coarse(ticks, ("p50_ms", "p99_ms")),
        "last_second": {
            "seconds": min(last["seconds"] for last in lasts),
            "requests": _add(last["requests"] for last in lasts),
            "ok": _add(last["ok"] for last in lasts),
            **_coarse(lasts, ("p50_ms", "p99_ms", "max_ms")),
        },
    }
