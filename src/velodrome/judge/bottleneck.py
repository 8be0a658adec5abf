"""Was it the generator or the server? The only place that decides and words it.

In the order of the rules: a load without right answers tells nothing, and little where they ceased to come; figures
of a generator at its limit are its own, and where the server is at its limit too, those of the pair; an open loop
that reached its rate had no limit. Else somebody is at theirs. Connections limit by Little's law («A Proof for
the Queuing Formula: L = λW», Operations Research 9, 1961): with L requests at once that take W each there are L ÷ W a
second. That is *why* there are so many in every closed loop; it is the *limit* where W is no longer than an answer
takes when nobody is before it, so that requests wait for each other nowhere. What is longer waits in a queue, and
where it is shows in the CPU time of the server's threads, in sockets that cannot be emptied, and in the round trip.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from velodrome.model import quantity
from velodrome.model.bottleneck import (
    SATURATED,
    USED_UP,
    WAITED,
    Bottleneck,
    Evidence,
    GeneratorFault,
    Limit,
    ServerUse,
    generator_fault,
)
from velodrome.model.load import NOTHING_FULL, Open, kept_up


def is_busy(server: ServerUse) -> bool:
    """Whether its busiest thread, or all its CPUs, had no room left; what waits for a CPU has none."""
    wanted = server.busiest_cpu_s + server.busiest_queued_s
    return wanted >= USED_UP * server.span_s or _uses_all(server)


def is_full(server: ServerUse) -> bool:
    """Whether its busiest thread, or all its CPUs, ran nearly all the time: waiting for a CPU is not running."""
    return _runs(server) or _uses_all(server)


def server_used(server: ServerUse) -> str:
    """Return which of a full server's threads ran, and how much: `the server's busiest thread 97 % of a CPU`."""
    if _runs(server):
        return (
            f"the server's busiest thread {quantity.percent(server.busiest_cpu_s / server.span_s)} of a CPU"
        )
    return f"the server's threads all of its {server.cpus} CPUs"


def because_of_server(server: ServerUse | None) -> str:
    """Return what the server's CPU time says, to follow a claim that it was the limit."""
    if server is None:
        return ""
    busiest, queued = server.busiest_cpu_s / server.span_s, server.busiest_queued_s / server.span_s
    if busiest + queued >= USED_UP:
        waited = ""
        if queued >= WAITED:
            waited = f" and waited {quantity.percent(queued)} of the time for a CPU that others had"
        return f": its busiest thread had {quantity.percent(busiest)} of a CPU{waited}"
    if _uses_all(server):
        return f": its threads used all of its {server.cpus} CPUs"
    return (
        f", though its busiest thread used only {quantity.percent(busiest)} of a CPU: its workers are too few, or wait "
        "for something else"
    )


def _runs(server: ServerUse) -> bool:
    return server.busiest_cpu_s >= USED_UP * server.span_s


def _uses_all(server: ServerUse) -> bool:
    return server.cpu_s >= USED_UP * server.span_s * server.cpus


# --- Whether a target fell silent: from a moment on it gave no right answer any more, though requests came to the end.
#
# Sums over the span hide that. A closed loop sends to a target that refuses it one request a second on each connection,
# so a target that is gone for half of the span costs a few failures beside millions of answers; if it hangs, it costs
# none at all until they time out. The seconds of the document (`series`) show both.

LEAST_S, LEAST_SHARE = 1.0, 0.05
"""A silence is at least so long, and so much of the span: any span may end in a short stall."""
LIKELY = 10.0
"""Right answers that should have come in it at the rate before. At one in two seconds, two silent seconds prove
nothing."""
SLOW = 2.0
"""It is also so many times a median latency: where all connections keep step, answers come in waves."""


def silent_after(document: Mapping[str, Any]) -> float | None:
    """Return the second of the span from which on no right answer came, to the whole second; None: they came.

    A load without any right answer is not meant, nor a load that sent nothing at its end.
    """
    series: Sequence[Mapping[str, Any]] = document.get("series") or ()
    answering = [second for second in series if second["ok"]]
    if not answering:
        return None
    since = answering[-1]["at_s"] + 1.0
    silent = [second for second in series if second["at_s"] >= since]
    length = document["duration_s"] - since
    if length < max(LEAST_S, LEAST_SHARE * document["duration_s"]) or not _any_sent(silent):
        return None
    missed = sum(second["ok"] for second in answering) / since * length
    median_s = max((second["p50_ms"] or 0.0 for second in answering), default=0.0) / 1000
    return since if missed >= LIKELY and length >= SLOW * median_s else None


def silence_sentence(after_s: float) -> str:
    """Return what a silence is, as the beginning or a part of a sentence: without its end."""
    return f"the target gave no correct response after {quantity.span(after_s)}"


def _any_sent(silent: Sequence[Mapping[str, Any]]) -> bool:
    """Whether requests were tried: some ended, or some were in flight or waited all the time."""
    return any(second["requests"] for second in silent) or (
        bool(silent) and all(second["in_flight"] + second["waiting"] for second in silent)
    )


# --- Was it the generator or the server? The only place that decides and words it.

QUEUES, QUEUES_SURELY = 1.5, 3.0
"""Latency over the shortest of the run: below the first nobody waits for others; above the second all do."""
MOSTLY = 0.5
"""A round trip that is so much of the latency, or looks at sockets that find bytes unsent so often."""
REPEATED = 0.001
"""Segments sent again, per request: a network loses some."""
DELAYED_MS = 35.0, 60.0
"""Linux acknowledges after 40 ms what it has not been able to acknowledge with an answer (`TCP_DELACK_MIN`)."""

Found = tuple[Limit, str]


def bottleneck(evidence: Evidence) -> Bottleneck:
    """Return where the limit was, in words."""
    rules = (_nothing, _silent, _both, _generator, _open if evidence.open_loop else _closed)
    at, sentence = next(found for rule in rules if (found := rule(evidence)))
    return Bottleneck(at, sentence, _facts(evidence))


def evidence(
    document: Mapping[str, Any], server: ServerUse | None = None, cpus: int | None = None
) -> Evidence:
    """Read the facts from a `velodrome/load/1` document; `cpus` are those that the generator may use."""
    generator, load, sockets = document["generator"], document["load"], document["sockets"]
    span_s, flags = document["duration_s"], document["flags"]
    had_s = max(span_s * generator["threads"], 1e-9)
    queued_s = generator["run_queue_s"]
    due_rps = load["rate"]
    at_once = load.get("at_once") or load["connections"] * load["streams"]
    return Evidence(
        open_loop=load["model"] == "open",
        span_s=span_s,
        requests=document["requests"],
        ok=document["ok"],
        answered_rps=document["throughput_rps"],
        due_rps=due_rps,
        at_once=at_once,
        mean_ms=document["latency_ms"]["sent"]["mean"],
        fastest_ms=document["fastest_ms"],
        threads=generator["threads"],
        transport=generator["transport"],
        cpu_share=generator["cpu_s"] / had_s,
        queued_share=None if queued_s is None else queued_s / had_s,
        real_time=generator.get("priority") == "real-time",
        awake_share=generator.get("awake_s", 0.0) / had_s,
        lag_p99_ms=document["lag_ms"]["p99"],
        lagged="generator-lagged" in flags,
        debug=generator["debug"],
        capped="capped-by-connections" in flags,
        looks=sockets["looked"],
        looks_unsent=sockets["with_unsent"],
        rtt_ms=None if sockets["rtt_us"] is None else sockets["rtt_us"] / 1000,
        retransmitted=sockets["retransmitted"],
        arriving_ms=((document.get("phases_ms") or {}).get("last_byte") or {}).get("mean"),
        server=server,
        silent_after_s=silent_after(document),
        cpus=cpus,
        scatter=Open(due_rps, load["arrivals"]).scatter(span_s) if due_rps else 0.0,
    )


def _nothing(seen: Evidence) -> Found | None:
    if seen.requests == 0:
        return Limit.UNKNOWN, "Cannot tell what the limit was: no request was made."
    if seen.ok == 0:
        return (
            Limit.UNKNOWN,
            "Cannot tell what the limit was: no response was correct, so this says nothing about speed.",
        )
    return None


def _silent(seen: Evidence) -> Found | None:
    if seen.silent_after_s is None:
        return None
    what = silence_sentence(seen.silent_after_s)
    return Limit.UNKNOWN, (
        f"{what[0].upper()}{what[1:]} of {quantity.span(seen.span_s)}, so the figures are those of a server that was "
        "there and of one that was not. See whether it still runs, and what it logged."
    )


def _both(seen: Evidence) -> Found | None:
    """Two that are full together: the figures are of the pair."""
    server, at = seen.server, Limit.GENERATOR if seen.cpu_share > SATURATED else Limit.SERVER
    if seen.debug or server is None or seen.cpu_share < USED_UP or not is_full(server):
        return None
    if seen.open_loop and at is Limit.SERVER:
        return None  # a schedule tells whether the server was too slow for it, and the generator was not
    return at, (
        f"Generator and server were both near their limit: the generator used {quantity.percent(seen.cpu_share)} of "
        f"{_cores(seen)}, and {server_used(server)}. The server alone may give more: {_relief(seen)}."
    )


def _relief(seen: Evidence) -> str:
    """Return what takes load off the generator: another thread only where there is a CPU for it."""
    if seen.cpus is not None and seen.cpus <= seen.threads:
        return "load it from another machine"
    return f"use -t {seen.threads + 1}, or load it from another machine"


def _generator(seen: Evidence) -> Found | None:
    queued = seen.queued_share or 0.0
    fault = generator_fault(seen.cpu_share, queued_share=queued, lagged=seen.lagged, debug=seen.debug)
    ours = "These figures are its own, not the server's"
    causes = {
        GeneratorFault.DEBUG: f"it was built without optimisation. {ours}: install a release build.",
        GeneratorFault.SATURATED: (
            f"it used {quantity.percent(seen.cpu_share)} of {_cores(seen)}. {ours}: {_relief(seen)}."
        ),
        GeneratorFault.QUEUED: (
            f"it waited {quantity.percent(queued)} of the time for a CPU that others had. {ours}: give it one of its "
            "own (taskset), or load from another machine."
        ),
        GeneratorFault.LAGGED: (
            f"it sent one request in a hundred {quantity.milliseconds(seen.lag_p99_ms)} ms late or more. {ours}: "
            f"leave it a CPU of its own, {_thread(seen)}or lower the rate."
        ),
    }
    return None if fault is None else (Limit.GENERATOR, f"The generator was the limit: {causes[fault]}")


def _thread(seen: Evidence) -> str:
    return "" if seen.cpus is not None and seen.cpus <= seen.threads else f"use -t {seen.threads + 1}, "


def _open(seen: Evidence) -> Found:
    due_rps, answered = seen.due_rps, quantity.rate(seen.answered_rps)
    if seen.capped and not _queues_in_the_server(seen):
        needed = ""
        if due_rps is not None and seen.mean_ms is not None:
            count = quantity.thousands(due_rps * seen.mean_ms / 1000)
            needed = (
                f": {quantity.rate(due_rps)} × {quantity.milliseconds(seen.mean_ms)} ms from sent to done "
                f"are {count} at once (Little's law)"
            )
        return Limit.CONNECTIONS, (
            f"The connections were the limit: all {quantity.thousands(seen.at_once)} were in use{needed}. Raise -c; if "
            "the latency rises with them, it is the server."
        )
    if due_rps is None or kept_up(seen.answered_rps, due_rps, NOTHING_FULL, seen.scatter):
        return (
            Limit.SCHEDULE,
            "Nothing was at its limit: the schedule had no higher rate, and the server kept up.",
        )
    if (stuck := _stuck(seen)) is not None:
        return stuck
    why = because_of_server(seen.server)
    return Limit.SERVER, (
        f"The server was the limit: the rate was {quantity.rate(due_rps)}, "
        f"and it gave {answered} correct responses{why}."
    )


def _queues_in_the_server(seen: Evidence) -> bool:
    """Whether the connections are in use because requests wait in the server for each other, and not for each alone."""
    if seen.server is not None and is_busy(seen.server):
        return True
    return bool(seen.mean_ms and seen.fastest_ms and seen.mean_ms > QUEUES_SURELY * seen.fastest_ms)


def _closed(seen: Evidence) -> Found:
    server = seen.server
    if server is not None and is_busy(server):
        return Limit.SERVER, f"The server was the limit{because_of_server(server)}."
    if (stuck := _stuck(seen)) is not None:
        return stuck
    mean, fastest = seen.mean_ms, seen.fastest_ms
    if mean is None or not fastest:
        return Limit.UNKNOWN, "Cannot tell what the limit was: no latency was measured."
    return _no_queue(seen, mean) if mean <= QUEUES * fastest else _queue(seen, mean / fastest)


def _queue(seen: Evidence, times: float) -> Found:
    """An answer takes so many times what it takes alone: requests wait, and no thread of the server is busy."""
    if (pieces := _in_pieces(seen)) is not None:
        return pieces
    as_long = f"an answer took {quantity.number(times, 2)} times as long as the fastest"
    if seen.server is not None:
        why = because_of_server(seen.server)
        return Limit.SERVER, f"The server was the limit: requests wait in it for each other ({as_long}){why}."
    if times >= QUEUES_SURELY:
        return Limit.SERVER, (
            f"The server was the limit: on average {as_long}, so requests waited in it for each other."
        )
    return Limit.UNKNOWN, (
        f"Cannot tell the server from the connections: on average {as_long}. Use -c {2 * seen.at_once}: if the rate "
        "rises, it was the connections (-c auto finds where it stops)."
    )


def _in_pieces(seen: Evidence) -> Found | None:
    """Most of the time of an answer is from its first byte to its last: it did not wait for others, it came slowly."""
    mean, arriving = seen.mean_ms, seen.arriving_ms or 0.0
    if mean is None or arriving < MOSTLY * mean:
        return None
    share = (
        f"of the {quantity.milliseconds(mean)} ms of an answer, {quantity.milliseconds(arriving)} are from its "
        "first byte to its last"
    )
    if seen.server is None:
        return Limit.UNKNOWN, (
            f"Cannot tell the link from the server: {share}. The link's rate makes them so long, or the server writes "
            "slowly: load it from its own machine to see which."
        )
    delayed = ""
    if DELAYED_MS[0] <= arriving <= DELAYED_MS[1]:
        delayed = (
            ". Some 40 ms are what a delayed acknowledgement and Nagle's algorithm make of an answer that is written "
            "in pieces: write it at once, or set TCP_NODELAY"
        )
    return Limit.SERVER, f"The server was the limit: it writes its answers in pieces, and {share}{delayed}."


def _no_queue(seen: Evidence, mean: float) -> Found:
    """Nobody waits for others: what one request takes, and how many there are at once, is all there is."""
    count = quantity.thousands(seen.at_once)
    rate = quantity.rate(seen.at_once / mean * 1000)
    law = f"{count} at once ÷ {quantity.milliseconds(mean)} ms (Little's law) = {rate}"
    if seen.rtt_ms is not None and seen.rtt_ms >= MOSTLY * mean:
        return Limit.LINK, (
            f"The link was the limit: its round trip is {quantity.milliseconds(seen.rtt_ms)} ms of "
            f"{quantity.milliseconds(mean)} ms, and {law}. More connections (-c) would get more."
        )
    return Limit.CONNECTIONS, (
        f"The connections were the limit: no request waited for another, and {law}. More of them (-c) would get more."
    )


def _stuck(seen: Evidence) -> Found | None:
    """Bytes lay in sockets and could not go out."""
    if not seen.looks or seen.looks_unsent < MOSTLY * seen.looks:
        return None
    if seen.retransmitted > REPEATED * seen.requests:
        return Limit.LINK, (
            "The link was the limit: what we sent lay in our sockets, and "
            f"{quantity.thousands(seen.retransmitted)} segments had to be sent again."
        )
    return Limit.SERVER, (
        "The server was the limit, or the link's rate: what we sent lay in our sockets and was not taken, and nothing "
        f"was lost on the way{because_of_server(seen.server)}."
    )


def _facts(seen: Evidence) -> str:
    """Return what was looked at: `Generator: 21 % of its core, io_uring, …`."""
    parts = [f"{quantity.percent(seen.cpu_share)} of {_cores(seen)}, {seen.transport}"]
    if seen.real_time:
        parts.append("real-time priority")
    if seen.awake_share:
        parts.append(f"{quantity.percent(seen.awake_share)} awake for what was about to be due")
    if seen.queued_share is not None:
        parts.append(f"waited {quantity.percent(seen.queued_share)} of the time for a CPU")
    if seen.lag_p99_ms is not None:
        parts.append(f"lag p99 {quantity.milliseconds(seen.lag_p99_ms)} ms")
    if seen.looks:
        parts.append(
            f"bytes unsent in {quantity.percent(seen.looks_unsent / seen.looks)} of looks at its sockets"
        )
    text = f"Generator: {', '.join(parts)}."
    if (server := seen.server) is not None:
        text += (
            f" Server: {quantity.number(server.cpu_s / server.span_s, 2)} of {server.cpus} CPUs, its busiest thread "
            f"{quantity.percent(server.busiest_cpu_s / server.span_s)} of one, which it waited for "
            f"{quantity.percent(server.busiest_queued_s / server.span_s)} of the time."
        )
    return text


def _cores(seen: Evidence) -> str:
    return "its core" if seen.threads == 1 else f"each of its {seen.threads} cores"
