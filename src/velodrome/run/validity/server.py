"""Whether it was the server, all of it, and whether it answered as it should: its processes, answers and protocol."""

import math
from collections.abc import Sequence
from statistics import median

from velodrome.model.load import QUEUE_STANDS, Open, Schedule
from velodrome.model.measurement import Flag, FlagKind, Severity, WorkerUse
from velodrome.model.quantity import significant
from velodrome.model.workers import UNEQUAL, busiest
from velodrome.run.validity.lab import FAILURES, Check, Evidence, count, milliseconds, percent

# Was it the server, all of it, and the same server throughout?


BURNS = 0.05
"""CPUs, at rest or without a connection: a twentieth shows in CPU per request as much as repeats differ."""


def died(evidence: Evidence) -> Flag | None:
    """The server, or part of it, was gone at the end."""
    sampled = evidence.sampled
    if sampled.root_alive and len(sampled.gone) <= len(sampled.came):
        return None
    if not sampled.root_alive:
        status = evidence.exit_status
        how = "" if status is None else f" (signal {-status})" if status < 0 else f" (exit {status})"
        sentence = f"The server died during the run{how}."
    else:
        sentence = f"{count(len(sampled.gone))} of the server's processes died during the run."
    return Flag(
        FlagKind.SERVER_DIED,
        Severity.INVALID,
        sentence,
        "Read its last lines, kept with this trial; look at its memory over time.",
        {"gone": len(sampled.gone), "came": len(sampled.came)},
    )


def restarted(evidence: Evidence) -> Flag | None:
    """Workers were replaced while they were measured."""
    gone, came = evidence.sampled.gone, evidence.sampled.came
    if not gone or not evidence.sampled.root_alive or len(gone) > len(came):
        return None
    single = len(gone) == 1
    return Flag(
        FlagKind.SERVER_RESTARTED,
        Severity.INVALID,
        f"{count(len(gone))} {'worker was' if single else 'workers were'} replaced during the run.",
        "Look for a crash or a time-out in the server's log, or for a limit of requests per worker.",
        {"replaced": len(gone)},
    )


def foreign_listener(evidence: Evidence) -> Flag | None:
    """Someone else listened on the server's port and may have answered for it."""
    foreign = evidence.sampled.foreign
    if not foreign:
        return None
    who = ", ".join(
        f"{f.name or 'a process'} ({'not ours to see' if f.pid is None else f.pid})" for f in foreign
    )
    return Flag(
        FlagKind.FOREIGN_LISTENER,
        Severity.INVALID,
        f"The server's port was also listened on by {who}: some answers may be theirs.",
        "End that process; if it is an earlier server, find out why it was not stopped.",
        {"listeners": len(foreign)},
    )


def queue_overflowed(evidence: Evidence) -> Flag | None:
    """Connections were turned away because too many waited; clients try again after a second."""
    queue = evidence.sampled.queue
    times = queue.overflows or 0
    if not times:
        return None
    limit = "" if queue.limit is None else f" (it holds {count(queue.limit)})"
    return Flag(
        FlagKind.LISTEN_QUEUE_OVERFLOWED,
        Severity.INVALID,
        f"The server's listen queue{limit} overflowed {count(times)} times: connections were turned away "
        "and came "
        "back a second or more later.",
        "Raise the backlog (and net.core.somaxconn), or give the server more workers to accept with.",
        {"overflows": times, "limit": -1 if queue.limit is None else queue.limit},
    )


def burns_at_rest(evidence: Evidence) -> Flag | None:
    """The server used CPU with nothing to do, or workers without a connection did under load."""
    rest, sampled = evidence.sampled.rest, evidence.sampled
    if rest.cpus is not None and rest.cpus > BURNS:
        return Flag(
            FlagKind.IDLE_WORKERS_BURN,
            Severity.NOTE,
            f"With nothing to do the server used {percent(rest.cpus)} of a CPU "
            f"({count(len(rest.busy))} of its {count(len(rest.processes))} processes).",
            "Something polls: look for a zero timeout in its loop; this CPU is part of the CPU per request "
            "shown.",
            {"cpus": rest.cpus, "processes": len(rest.busy)},
        )
    workers = sampled.server.workers
    # A connection is on no worker between two requests where it is closed after each.
    if not _held(evidence) or evidence.reopens or sampled.came:
        return None
    idle = [
        w
        for w in workers
        if w.connections == 0 and w.cpu_s > BURNS * sampled.span_s and _is_worker(evidence, w)
    ]
    if not idle:
        return None
    return Flag(
        FlagKind.IDLE_WORKERS_BURN,
        Severity.NOTE,
        f"{count(len(idle))} of {count(len(workers))} processes had no connection and still used "
        f"{percent(max(w.cpu_s for w in idle) / sampled.span_s)} of a CPU.",
        "Workers woken for connections that others take (a thundering herd), or polling; try SO_REUSEPORT.",
        {"processes": len(idle), "cpu_s": sum(w.cpu_s for w in idle)},
    )


def _is_worker(evidence: Evidence, worker: WorkerUse) -> bool:
    """Whether a process is one of the workers rather than the master, which is the first of several."""
    return len(evidence.sampled.server.workers) == 1 or worker.pid != evidence.sampled.rest.root


def unequal_workers(evidence: Evidence) -> Flag | None:
    """A worker did much more than its share."""
    wanted, sampled = evidence.workers, evidence.sampled
    connections = evidence.closed.connections if evidence.closed else _held(evidence)
    if wanted is None:
        return None
    used_s = sorted((worker.cpu_s for worker in sampled.server.workers), reverse=True)[:wanted]
    most = busiest(used_s, wanted, connections)
    if most is None or most <= UNEQUAL:
        return None
    share = most / wanted
    idle = wanted - sum(cpu_s > 0.1 * sum(used_s) / wanted for cpu_s in used_s)
    rest = f"; {count(idle)} did next to nothing" if idle else ""
    return Flag(
        FlagKind.UNEQUAL_WORKERS,
        Severity.NOTE,
        f"One of {count(wanted)} workers did {percent(share)} of the work (an equal share is "
        f"{percent(1 / wanted)}){rest}.",
        "Keep-alive connections stay where they were accepted: try SO_REUSEPORT, fewer workers, or a proxy "
        "that spreads.",
        {"share": share, "workers": wanted, "idle": idle},
    )


def _held(evidence: Evidence) -> int:
    return sum(worker.connections or 0 for worker in evidence.sampled.server.workers)


OF_THE_SERVER: tuple[Check, ...] = (
    died,
    restarted,
    foreign_listener,
    queue_overflowed,
    burns_at_rest,
    unequal_workers,
)


# Were the answers right, did every connection get some, and are they enough for the figures shown?


FEW = 0.01
"""Share of failed requests: from a hundredth on, failures (often fast ones) move p99 and the mean by
themselves.
"""
BEYOND = 10
"""Requests that must lie beyond a percentile: their number then has a standard error of a third, 1 /
sqrt(10).
"""
HELD = 0.99
"""Part of the idle connections: a hundredth less moves no curve."""
ROUNDS = 2
"""How often every connection must have had its turn before a connection without an answer was kept out, not just
waiting.
"""

BRIEF_S = 0.5
"""Connections are opened, caches are cold, and a pause of this machine (3 to 9 ms) is a per cent of it and more."""
SETTLED_S = 2.0
"""As long as the shortest spans of velodrome's own studies."""


def errors(evidence: Evidence) -> Flag | None:
    """Requests that failed; failing is often faster than serving."""
    failed, facts = evidence.failures, evidence.facts
    if not failed:
        return None
    share = failed / max(facts.requests, 1)
    kinds = {kind: facts.outcomes[kind] for kind in FAILURES if facts.outcomes.get(kind)}
    listed = ", ".join(f"{number:,} {kind.replace('_', ' ')}" for kind, number in kinds.items())
    return Flag(
        FlagKind.ERRORS,
        Severity.INVALID if share >= FEW else Severity.NOTE,
        f"{failed:,} of {facts.requests:,} requests failed ({percent(share)}): {listed}.",
        "Look at the examples kept with this measurement and at the server's log; lower the load until all "
        "are served.",
        {"failed": failed, "requests": facts.requests, **kinds},
    )


def answered_before_read(evidence: Evidence) -> Flag | None:
    """Answers that were complete before the request was: the server did not do what it should."""
    early, facts = evidence.facts.answered_before_read, evidence.facts
    if not early:
        return None
    share = early / max(facts.requests, 1)
    return Flag(
        FlagKind.ANSWERED_BEFORE_READ,
        Severity.INVALID if share >= FEW else Severity.NOTE,
        f"{early:,} of {facts.requests:,} answers were complete before the server had read the request: "
        "its reading is not in these figures.",
        "Have the handler read the whole body before it answers.",
        {"early": early, "requests": facts.requests},
    )


def _unanswered(evidence: Evidence) -> float:
    """Return the share of a closed loop's connections that got no answer although all could have had their turn."""
    closed, facts = evidence.closed, evidence.facts
    served = facts.connections_answered
    if (
        closed is None
        or served is None
        or facts.throughput_rps * facts.duration_s < ROUNDS * closed.connections
    ):
        return 0.0
    return max(0.0, 1 - served / closed.connections)


def never_in(evidence: Evidence) -> Flag | None:
    """Connections that got no answer at all although all could have had their turn."""
    closed, facts = evidence.closed, evidence.facts
    served = facts.connections_answered
    if closed is None or served is None or _unanswered(evidence) <= 0:
        return None
    outside = closed.connections - served
    per_connection = facts.throughput_rps * facts.duration_s / max(served, 1)
    return Flag(
        FlagKind.CONNECTIONS_NEVER_IN,
        Severity.INVALID,
        f"{count(outside)} of {count(closed.connections)} connections never got an answer, while "
        f"{'the one that did' if served == 1 else f'the {count(served)} that did'} got {count(per_connection)} each: "
        f"this is the load of {count(served)} connection{'' if served == 1 else 's'}.",
        "A server that keeps a worker for each connection needs as many workers or threads as connections, "
        "or a proxy in front; a longer listen queue (backlog) lets more wait.",
        {"outside": outside, "connections": closed.connections},
    )


def unfair(evidence: Evidence) -> Flag | None:
    """A closed loop whose connections were not served evenly: most requests are those of a few connections.

    The bound is the engine's (`UNFAIR` in `crates/engine/src/results.rs`), which stands beside its reason.
    """
    found, facts = evidence.facts.fairness, evidence.facts
    if found is None or found.jain_short_term is None or "unfair" not in facts.engine_flags:
        return None
    typical = "half of them got none at all"
    if found.median_connection_ms is not None:
        typical = f"the median connection waits {milliseconds(found.median_connection_ms)} for an answer"
    median = (
        ""
        if facts.due.p50 is None
        else f"half of all requests took at most {milliseconds(facts.due.p50)}, and "
    )
    return Flag(
        FlagKind.UNFAIR,
        Severity.NOTE,
        f"At any time about {count(max(1, round(found.jain_short_term * found.connections)))} of "
        f"{count(found.connections)} connections got the answers while the others waited (Jain's index "
        f"{found.jain_short_term:.2f}): {median}{typical}.",
        "Read latency from an open loop. Where the server goes on with a connection as long as that has requests, let "
        "it turn to the others after each, or put a proxy in front.",
        {
            "jain": found.jain or 0.0,
            "jain_short_term": found.jain_short_term,
            "connections": found.connections,
            "least": found.least,
            "most": found.most,
            **(
                {}
                if found.median_connection_ms is None
                else {"median_connection_ms": found.median_connection_ms}
            ),
        },
    )


def idle_not_held(evidence: Evidence) -> Flag | None:
    """Idle connections that were not there, or that the server had not taken in."""
    idle = evidence.idle
    if idle is None:
        return None
    waiting = 0 if idle.accepted is None else idle.opened - idle.accepted
    facts = {
        "asked": idle.asked,
        "opened": idle.opened,
        "still_open": idle.still_open,
        "waiting": max(0, waiting),
    }
    if idle.still_open < HELD * idle.asked:
        lost = idle.opened - idle.still_open
        how = f"{count(idle.opened)} could be opened, {count(lost)} of them the server ended"
        return Flag(
            FlagKind.IDLE_NOT_HELD,
            Severity.INVALID,
            f"Of {count(idle.asked)} idle connections {count(idle.still_open)} were there at the end ({how}): this is "
            "not the load that was configured.",
            "Give the server a longer keep-alive time-out and more descriptors (ulimit -n), or hold fewer connections.",
            facts,
        )
    if waiting > (1 - HELD) * idle.asked:
        return Flag(
            FlagKind.IDLE_NOT_HELD,
            Severity.NOTE,
            f"Of {count(idle.opened)} idle connections the server had taken in {count(idle.accepted or 0)}; the others "
            "lay in its listen queue.",
            "A server that keeps a worker or a thread for each connection takes in no more than it has of those.",
            facts,
        )
    return None


def too_short(evidence: Evidence) -> Flag | None:
    """Too few requests for the percentiles shown."""
    number = evidence.facts.requests - evidence.failures - evidence.facts.outcomes.get("unfinished", 0)
    if number >= BEYOND * 100:
        return None
    if number < BEYOND:
        in_span = round(evidence.facts.throughput_rps * evidence.facts.duration_s)
        if evidence.closed and in_span >= BEYOND:
            # A queue as long as the span: what was answered in it had been sent before it began.
            return Flag(
                FlagKind.TOO_SHORT,
                Severity.NOTE,
                f"{in_span} answers arrived, but only {number} to requests sent in the same span: throughput is "
                "known, latency is not.",
                "Run longer (-z) than a request waits.",
                {"answered": number, "in_span": in_span},
            )
        in_flight = evidence.facts.outcomes.get("unfinished", 0)
        sent = f"{f'Only {number}' if number else 'None'} of the {evidence.facts.requests:,} requests sent in the span"
        if in_flight and not evidence.failures:
            # Nothing went wrong: the server, or the queue before it, takes longer than anybody waited.
            return Flag(
                FlagKind.TOO_SHORT,
                Severity.INVALID,
                f"{sent} of {significant(evidence.facts.duration_s)} s got an answer by the end, none failed, and "
                f"{count(in_flight)} were still in flight: an answer takes longer than that here.",
                "Run longer (-z) than a request waits, or load with fewer requests at once.",
                {"answered": number, "in_flight": in_flight},
            )
        return Flag(
            FlagKind.TOO_SHORT,
            Severity.INVALID,
            f"{sent} got an answer: no figure can rest on that.",
            "Run longer (-z), or send more at once.",
            {"answered": number},
        )
    highest = math.floor(100 * (1 - BEYOND / number))
    return Flag(
        FlagKind.TOO_SHORT,
        Severity.NOTE,
        f"{number:,} requests were answered: p99 rests on the slowest {count(max(1, round(number / 100)))} "
        "of them; "
        f"p{highest} is the highest percentile with {BEYOND} beyond it.",
        f"Run {count(BEYOND * 100 / number)} times as long for p99, or take the blocks together.",
        {"answered": number, "highest_percentile": highest},
    )


def brief(evidence: Evidence) -> Flag | None:
    """A number of requests that were over at once: what is measured is the beginning."""
    facts, load = evidence.facts, evidence.load
    if load.requests is None or facts.duration_s >= BRIEF_S:
        return None
    return Flag(
        FlagKind.BRIEF,
        Severity.NOTE,
        f"All {facts.requests:,} requests were over after {milliseconds(facts.duration_s * 1000)}: this is how a "
        "server begins, not how it goes on.",
        f"Send {count(facts.requests * SETTLED_S / max(facts.duration_s, 1e-6))} of them, or load for a time.",
        {"duration_s": facts.duration_s, "requests": facts.requests},
    )


def unchecked(evidence: Evidence) -> Flag | None:
    """A generator that cannot tell a failure from a right answer."""
    facts = evidence.facts
    if not facts.blind:
        return None
    return Flag(
        FlagKind.ANSWERS_UNCHECKED,
        Severity.NOTE,
        f"{facts.driver} looks at {facts.checks}: what it counts as answered may have failed.",
        "Read the errors of another driver beside it.",
        {"driver": facts.driver},
    )


OF_THE_ANSWERS: tuple[Check, ...] = (
    errors,
    answered_before_read,
    never_in,
    unfair,
    idle_not_held,
    too_short,
    brief,
    unchecked,
)


# Does the server keep to the protocol where clients only forgive it: heads as they should be, requests read whole?


UNREAD = 0.01
"""Closes per request: fewer are connections that a client gave up."""


def closed_unread(evidence: Evidence) -> Flag | None:
    """Connections that were closed with data unread: the kernel resets them, and what was sent may be lost."""
    closed, requests = evidence.sampled.host.closed_unread or 0, max(evidence.facts.requests, 1)
    if closed <= UNREAD * requests:
        return None
    reset = evidence.facts.outcomes.get("reset", 0)
    lost = (
        f"{count(reset)} of {count(requests)} requests failed by that"
        if reset
        else "no answer was lost by that"
    )
    return Flag(
        FlagKind.CLOSED_UNREAD,
        Severity.NOTE,
        f"{count(closed)} connections were closed with part of a request unread, which resets them: {lost}.",
        "Have the server read a request whole before it answers and closes (RFC 9112, section 9.6).",
        {"closed_unread": closed, "reset": reset},
    )


def length_not_told(evidence: Evidence) -> Flag | None:
    """Answers that only the end of the connection ends."""
    if evidence.form is None or evidence.form.length_told:
        return None
    return Flag(
        FlagKind.LENGTH_NOT_TOLD,
        Severity.NOTE,
        "Its responses have neither a length nor chunks: each costs a connection, and a truncated response looks "
        "complete.",
        "Send a Content-Length (RFC 9112, section 6.3).",
    )


def bare_line_ends(evidence: Evidence) -> Flag | None:
    """Heads whose lines end in LF alone."""
    if evidence.form is None or evidence.form.line_ends == "CRLF":
        return None
    return Flag(
        FlagKind.BARE_LINE_ENDS,
        Severity.NOTE,
        "Lines of its heads end in LF without CR: clients may read over that (RFC 9112, section 2.2), and some do not.",
        "End every line of a head in CRLF.",
    )


OF_THE_FORM: tuple[Check, ...] = (closed_unread, length_not_told, bare_line_ends)


LITTLE = 0.1
"""Relative: three times the spread of throughput between repeats on a small virtual machine (3.5 %)."""
LITTLE_LEAST = 0.5
"""Requests in flight: below one, a mean of samples is too coarse to judge by."""
TREND = 0.2
"""Relative change from first to last second: more than five times that spread."""
TREND_LATENCY = 0.5
"""The same for p50 in an open loop, which moves more than throughput does."""
SIGNIFICANT = 1.96
"""Standard deviations of Kendall's S under no trend: 5 % two-sided."""
SECONDS = 5
"""Fewer whole seconds cannot show a trend: even in perfect order they pass no test at 5 %."""
DIP = 0.5
"""Part of the median second: half the work missing is a stall, not noise."""


def littles_law(evidence: Evidence) -> Flag | None:
    """Mean concurrency must be throughput x mean latency (Little 1961, doi:10.1287/opre.9.3.383).

    Closed loop: the requested connections. Open loop: requests in flight as sampled, where the server kept up
    (the law is about a steady state, which a rate that changes has not). Requests that straddle the ends of the
    span are worth latency / duration, which is allowed for; in a closed loop the longest latency, because each
    connection has a request in flight, and a server that prefers some connections lets the others wait longest. Those
    that wait all through the span have no latency at all: where the engine saw that connections were not served evenly,
    fewer by the law than there are is the server's doing (`unfair`), as it is where the others lay in its listen queue:
    a busy event loop may take in one connection a turn. Connections that never got an answer (`never_in`) need
    not be in it. Where connections are opened for single requests the time from due counts: opening is in it.
    """
    facts = evidence.facts
    from_due = evidence.reopens and evidence.closed and facts.due.mean is not None
    latency = facts.due if from_due else facts.sent
    mean_ms = latency.mean
    if (
        facts.latency_corrected
        or isinstance(evidence.load.pace, Schedule)
        or mean_ms is None
        or facts.throughput_rps <= 0
        or evidence.failures > 0.01 * facts.requests
    ):
        return None
    if fell_behind(evidence) is not None:
        return None
    latency_s = mean_ms / 1e3
    by_law = facts.throughput_rps * latency_s
    wanted = facts.at_once or (evidence.closed.connections * evidence.load.streams if evidence.closed else 0)
    actual = float(wanted) if evidence.closed else facts.mean_in_flight
    if actual is None:
        return None
    longest_s = max(latency_s, (latency.max or 0.0) / 1e3) if evidence.closed else latency_s
    allowed = actual * (LITTLE + longest_s / max(facts.duration_s, 1e-9)) + LITTLE_LEAST
    lay = actual - by_law
    starved = actual if "unfair" in facts.engine_flags else _unanswered(evidence) * actual
    if -allowed <= lay <= starved + allowed:
        return None
    if evidence.closed and 0 < lay <= (evidence.sampled.queue.peak or 0) + allowed:
        return Flag(
            FlagKind.UNFAIR,
            Severity.NOTE,
            f"About {count(lay)} of {count(actual)} connections lay in the server's listen queue while the others got "
            "the answers: it takes in new connections slowly while it is busy.",
            "Read latency from an open loop. Where clients connect anew often, give it fewer requests at once, or put "
            "a proxy in front that keeps connections.",
            {"outside": lay, "connections": actual},
        )
    whose = "connections were requested" if evidence.closed else "requests were in flight on average"
    whose = "messages to all were kept on their way" if evidence.closed and facts.at_once else whose
    return Flag(
        FlagKind.LITTLES_LAW,
        Severity.INVALID,
        f"{count(facts.throughput_rps)}/s × {milliseconds(mean_ms)} makes {count(by_law)} requests in "
        "flight, "
        f"but {count(actual)} {whose}: at least one of these figures is wrong.",
        "Look for connections that are never made, for a saturated generator, or a run too short for its "
        "latency.",
        {"by_law": by_law, "actual": actual, "throughput_rps": facts.throughput_rps, "mean_ms": mean_ms},
    )


def fell_behind(evidence: Evidence) -> Flag | None:
    """An open loop the server could not carry: its queue grew to the end, so latency measures the run's
    length.
    """
    pace, facts = evidence.load.pace, evidence.facts
    if not isinstance(pace, Open) or evidence.failures > 0.01 * facts.requests:
        return None
    first_ms = facts.series[0].p50_ms if facts.series else None
    natural = min((first_ms or evidence.wait_ms) / 1e3 / max(facts.duration_s, 1e-9), 0.25)
    if pace.kept_up(facts.throughput_rps, facts.duration_s, QUEUE_STANDS - natural):
        return None
    return Flag(
        FlagKind.NOT_STATIONARY,
        Severity.INVALID,
        f"The server carried {count(facts.throughput_rps)}/s of the {count(pace.rate)}/s offered: its queue "
        "grew to the "
        "end, so this latency depends on how long the run was.",
        f"Compare latency at a rate all can carry, below {count(facts.throughput_rps * 0.8)}/s for this contestant.",
        {"throughput_rps": facts.throughput_rps, "rate": pace.rate},
    )


def trend(evidence: Evidence) -> Flag | None:
    """Throughput (closed loop) or p50 (open loop) that rises or falls all through the span.

    Mann-Kendall test (Mann 1945, doi:10.2307/1907187) for its presence, Theil-Sen slope (Sen 1968,
    doi:10.1080/01621459.1968.10480934) for its size: neither minds an odd second.
    """
    facts = evidence.facts
    if isinstance(evidence.load.pace, Schedule):
        return None  # the rate changes, so what comes of it does
    whole = [second for second in facts.series if second.at_s + 1 <= facts.duration_s + 0.01]
    if evidence.closed:
        name, least, values = "throughput", TREND, [float(second.ok) for second in whole]
    else:
        name, least = "p50", TREND_LATENCY
        values = [second.p50_ms for second in whole if second.p50_ms is not None]
    change = relative_change(values)
    if change is None or abs(change) < least or (name == "p50" and abs(change) * median(values) < 1.0):
        return None
    return Flag(
        FlagKind.NOT_STATIONARY,
        Severity.INVALID,
        f"Over {len(values)} seconds {name} {'rose' if change > 0 else 'fell'} by {percent(abs(change))}, "
        "steadily: the server had not settled.",
        "Warm up longer (--warmup), run longer, and look at CPU and memory over time for what changes.",
        {"change": change, "seconds": len(values)},
    )


def relative_change(values: Sequence[float]) -> float | None:
    """Return the change from first to last value over the median, if a trend is significant; else None."""
    number = len(values)
    if number < SECONDS:
        return None
    pairs = [(i, j) for i in range(number) for j in range(i + 1, number)]
    score = sum((values[j] > values[i]) - (values[j] < values[i]) for i, j in pairs)
    deviation = math.sqrt(number * (number - 1) * (2 * number + 5) / 18)
    middle = median(values)
    if (abs(score) - 1) / deviation < SIGNIFICANT or middle <= 0:
        return None
    slope = median((values[j] - values[i]) / (j - i) for i, j in pairs)
    return slope * (number - 1) / middle


def dip(evidence: Evidence) -> Flag | None:
    """A second in which less than half of the usual was served: a stall of server or machine."""
    whole = [
        second for second in evidence.facts.series if second.at_s + 1 <= evidence.facts.duration_s + 0.01
    ]
    if len(whole) < SECONDS or isinstance(evidence.load.pace, Schedule):
        return None
    usual = median(second.ok for second in whole)
    worst = min(whole, key=lambda second: second.ok)
    # Ten requests a second come to fewer than five by chance alone once in a while; a hundred never do.
    if usual < 50 or worst.ok >= DIP * usual:
        return None
    return Flag(
        FlagKind.NOT_STATIONARY,
        Severity.NOTE,
        f"In the second from {worst.at_s:.0f} s on {worst.ok:,} requests were served, usually "
        f"{count(usual)}: "
        "something stalled.",
        "See whether it comes back in other blocks: a server's pause does, a neighbour's does not.",
        {"at_s": worst.at_s, "ok": worst.ok, "usual": usual},
    )


OF_CONSISTENCY: tuple[Check, ...] = (littles_law, fell_behind, trend, dip)
