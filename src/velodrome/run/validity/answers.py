"""Were the answers right, did every connection get some, and are they enough for the figures shown?"""

import math

from velodrome.model.measurement import Flag, FlagKind, Severity
from velodrome.run.validity.evidence import FAILURES, Check, Evidence, count, milliseconds, percent

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
"""How often every connection must have had its turn before one without an answer was kept out, not just
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
    """Answers that were complete before the request was: the server did not do what it was asked."""
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


def never_in(evidence: Evidence) -> Flag | None:
    """Connections that got no answer at all although all could have had their turn."""
    closed, facts = evidence.closed, evidence.facts
    served = facts.connections_answered
    if closed is None or served is None or facts.throughput_rps <= 0:
        return None
    outside = closed.connections - served
    rounds = facts.throughput_rps * facts.duration_s / closed.connections
    if outside <= 0 or rounds < ROUNDS:
        return None
    each = facts.throughput_rps * facts.duration_s / max(served, 1)
    return Flag(
        FlagKind.CONNECTIONS_NEVER_IN,
        Severity.INVALID,
        f"{count(outside)} of {count(closed.connections)} connections never got an answer, while "
        f"{'the one that did' if served == 1 else f'the {count(served)} that did'} got {count(each)} each: "
        f"this is the load of {count(served)} connection{'' if served == 1 else 's'}.",
        "A server that keeps a worker for each connection needs as many workers or threads as connections, "
        "or a proxy in front; a longer listen queue (backlog) lets more wait.",
        {"outside": outside, "connections": closed.connections},
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
            "not the load that was asked for.",
            "Give the server a longer keep-alive time-out and more descriptors (ulimit -n), or ask for fewer.",
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
                f"{in_span} answers arrived, but only {number} to requests sent in the same span: throughput can be "
                "told, latency cannot.",
                "Run longer (-z) than a request waits.",
                {"answered": number, "in_span": in_span},
            )
        return Flag(
            FlagKind.TOO_SHORT,
            Severity.INVALID,
            (f"Only {number} of the requests" if number else "None of the requests")
            + " sent in the span were answered: no figure can rest on that.",
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


CHECKS: tuple[Check, ...] = (
    errors,
    answered_before_read,
    never_in,
    idle_not_held,
    too_short,
    brief,
    unchecked,
)
