"""The documents of the engine: parts of the specification it takes, and the report it gives (`velodrome/load/1`)."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from velodrome.model.app import Content, Request
from velodrome.model.load import Step
from velodrome.model.load_document import SCHEMA, LoadDocument, Percentiles, Second
from velodrome.model.load_document import Fairness as FairnessReport
from velodrome.model.load_document import Step as StepReport
from velodrome.model.measurement import Fairness, Latency, LoadFacts, LoadSecond, LoadStep


def facts_of(plain: Mapping[str, Any]) -> LoadFacts:
    """Return the facts of a load. Raises KeyError, TypeError or ValueError on anything but a load's document."""
    if plain["schema"] != SCHEMA:
        raise ValueError(f"schema is {plain['schema']!r}, not {SCHEMA!r}")
    # So the type checker sees that every field which is read is in the published schema.
    document = cast(LoadDocument, plain)
    deliveries, first = document["deliveries"], document["first_message_ms"]
    connections, generator = document["connections"], document["generator"]
    return LoadFacts(
        requests=document["requests"],
        ok=document["ok"],
        duration_s=document["duration_s"],
        throughput_rps=document["throughput_rps"],
        outcomes=dict(document["outcomes"]),
        due=_latency(document["latency_ms"]["due"]),
        sent=_latency(document["latency_ms"]["sent"]),
        lag=_latency(document["lag_ms"]),
        connections_asked=connections["asked"],
        connections_opened=connections["opened"],
        connections_reopened=connections["reopened"],
        connections_answered=connections["answered"],
        mean_in_flight=document["mean_in_flight"],
        generator_cpu_s=generator["cpu_s"],
        generator_cpu_user_s=generator["cpu_user_s"],
        generator_cpu_sys_s=generator["cpu_sys_s"],
        generator_transport=generator["transport"],
        generator_saturated=generator["saturated"],
        engine_flags=tuple(document["flags"]),
        series=tuple(_second(second) for second in document["series"]),
        hdr_due=document["hdr"]["due"],
        hdr_sent=document["hdr"]["sent"],
        examples=tuple(f"{example['outcome']}: {example['text']}" for example in document["examples"]),
        answered_before_read=document["answered_before_read"],
        resent=plain.get("resent"),
        steps=tuple(_step(step) for step in plain.get("steps", ())),
        first_due=None if first is None else _latency(first["due"]),
        first_sent=None if first is None else _latency(first["sent"]),
        at_once=document["load"]["at_once"],
        deliveries=None if deliveries is None else deliveries["count"],
        delivery_due=None if deliveries is None else _latency(deliveries["latency_ms"]["due"]),
        delivery_sent=None if deliveries is None else _latency(deliveries["latency_ms"]["sent"]),
        streams_without_room=document["streams"]["without_room"],
        fairness=_fairness(document.get("fairness")),
        generator_threads=generator["threads"],
        generator_debug=generator["debug"],
        fastest_ms=document.get("fastest_ms"),
    )


def _fairness(row: FairnessReport | None) -> Fairness | None:
    if row is None:
        return None
    return Fairness(
        connections=row["connections"],
        answers=row["answers"],
        least=row["least"],
        most=row["most"],
        jain=row["jain"],
        jain_short_term=row["jain_short_term"],
        mean_ms=row["mean_ms"],
        median_connection_ms=row["median_connection_ms"],
    )


def _latency(row: Percentiles) -> Latency:
    return Latency(
        mean=row["mean"],
        p50=row["p50"],
        p75=row["p75"],
        p90=row["p90"],
        p95=row["p95"],
        p99=row["p99"],
        p99_9=row["p99.9"],
        max=row["max"],
    )


def _step(row: StepReport) -> LoadStep:
    return LoadStep(
        at_s=row["at_s"],
        duration_s=row["duration_s"],
        rate=row["rate"],
        to_rate=row["to_rate"],
        requests=row["requests"],
        ok=row["ok"],
        throughput_rps=row["throughput_rps"],
        due=_latency(row["latency_ms"]["due"]),
        sent=_latency(row["latency_ms"]["sent"]),
        lag_p99_ms=row["lag_ms"]["p99"],
    )


def _second(row: Second) -> LoadSecond:
    return LoadSecond(
        at_s=row["at_s"],
        requests=row["requests"],
        ok=row["ok"],
        errors=row["errors"],
        in_flight=row["in_flight"],
        p50_ms=row["p50_ms"],
        p99_ms=row["p99_ms"],
        max_ms=row["max_ms"],
    )


def mix_document(requests: Sequence[Request]) -> list[dict[str, Any]]:
    """Return the field; a request with an empty path goes to the path of the load's URL."""
    return [
        {
            "name": request.name,
            "weight": request.weight,
            "method": request.method,
            "path": request.path or None,
            "headers": [list(header) for header in request.headers],
            "body": _content(request.body),
            "expect_status": request.expect_status,
            "expect_body": _content(request.expect_body),
            "expect_contains": request.expect_contains,
        }
        for request in requests
    ]


def _content(content: Content | None) -> dict[str, str] | None:
    if content is None:
        return None
    return {"base64": content.base64} if content.base64 else {"text": content.text}


def schedule_document(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """Return the field; a step without `to_rate` keeps its rate."""
    return [
        {"rate": step.rate, "duration_s": step.duration_s}
        | ({} if step.to_rate is None else {"to_rate": step.to_rate})
        for step in steps
    ]
