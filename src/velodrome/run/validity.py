"""Why a measurement may not be what it seems: pure functions from facts to flags, family by family.

Every threshold stands beside its reason. INVALID: the figures are not the server's, or not of the load asked
for. NOTE: they are, and the reader should know this beside them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from velodrome.model.load import Closed, Load, Open, Schedule
from velodrome.model.measurement import (
    AnswerForm,
    Flag,
    FlagKind,
    IdleFacts,
    LinkFacts,
    LoadFacts,
    Severity,
    UpstreamFacts,
    WayFacts,
    WorkerUse,
)
from velodrome.run.measuring.sampler import Sampled

__all__ = ["Evidence", "flags"]

FAILURES = ("refused", "reset", "timeout", "bad_status", "wrong_body", "bad_protocol")
"""Outcomes that are a server's fault. `unfinished` is none: every closed loop ends with requests in flight.
"""


@dataclass(frozen=True)
class Evidence:
    """Facts only; durations in the units of their names."""

    load: Load
    facts: LoadFacts
    sampled: Sampled
    machine_cpus: int
    """CPUs of the machine, whoever was given them."""
    upstream: UpstreamFacts | None = None
    link: LinkFacts | None = None
    rtt_ms: float = 0.0
    """Of the link, as asked for; 0: loopback."""
    rate_mbit: float | None = None
    """Of the link's bottleneck, each way; None: none was asked for."""
    load_cpus: int = 1
    """CPUs that generator and relay share."""
    beside_cpus: int = 1
    """CPUs that third party and databases share."""
    beside_load: bool = True
    """Whether the generator is on these as well."""
    wait_ms: float = 0.0
    """What a request waits at least, by its recipe; 0: not known."""
    workers: int | None = None
    """Worker processes asked for; None: the stack has no such knob."""
    idle: IdleFacts | None = None
    """Connections held beside the load; None: none were asked for."""
    form: AnswerForm | None = None
    """How the server writes its answers; None: not looked at."""
    exit_status: int | None = None
    """Of the server, when it ended before it was told to."""

    @property
    def closed(self) -> Closed | None:
        """The pace, if it is a closed loop."""
        return self.load.pace if isinstance(self.load.pace, Closed) else None

    @property
    def failures(self) -> int:
        """Requests that came to anything but a right answer or the end of the run."""
        return sum(self.facts.outcomes.get(outcome, 0) for outcome in FAILURES)


Check = Callable[[Evidence], Flag | None]


def count(number: float) -> str:
    """Write a number for people: `4,000`, `12.5`, `0.031`; three digits are more than any of them deserve."""
    if number >= 100 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.3g}"


def percent(share: float) -> str:
    """Write a share as per cent, one digit below ten: `98 %`, `1.2 %`."""
    return f"{share * 100:.0f} %" if share >= 0.1 else f"{share * 100:.1f} %"


def milliseconds(value: float) -> str:
    """Write milliseconds: `0.31 ms`, `12 ms`, `3,980 ms`."""
    return f"{value:,.0f} ms" if value >= 100 else f"{value:.2g} ms"


# Was it the server, all of it, and the same one throughout?


UNEQUAL = 1.5
"""Busiest worker over an equal share. Connections that fall on workers by chance, 10 to each, differ by a
third.
"""
CONNECTIONS_EACH = 10
"""Fewer connections per worker are unequal by chance."""
JUDGED_FROM_S = 0.1
"""CPU seconds of all workers: less is start-up and housekeeping."""
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
    one = len(gone) == 1
    return Flag(
        FlagKind.SERVER_RESTARTED,
        Severity.INVALID,
        f"{count(len(gone))} {'worker was' if one else 'workers were'} replaced during the run.",
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
    if not _held(evidence) or not evidence.load.keepalive or sampled.came:
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
    """One worker did much more than its share."""
    asked, sampled = evidence.workers, evidence.sampled
    connections = evidence.closed.connections if evidence.closed else _held(evidence)
    if asked is None or asked < 2 or connections < CONNECTIONS_EACH * asked:
        return None
    # The master, and helpers such as multiprocessing's, use next to nothing: the busiest are the workers.
    busiest = sorted((worker.cpu_s for worker in sampled.server.workers), reverse=True)[:asked]
    total = sum(busiest)
    if total < JUDGED_FROM_S:
        return None
    share = busiest[0] / total
    if share * asked <= UNEQUAL:
        return None
    idle = asked - sum(cpu_s > 0.1 * total / asked for cpu_s in busiest)
    rest = f"; {count(idle)} did next to nothing" if idle else ""
    return Flag(
        FlagKind.UNEQUAL_WORKERS,
        Severity.NOTE,
        f"One of {count(asked)} workers did {percent(share)} of the work (an equal share is "
        f"{percent(1 / asked)}){rest}.",
        "Keep-alive connections stay where they were accepted: try SO_REUSEPORT, fewer workers, or a proxy "
        "that spreads.",
        {"share": share, "workers": asked, "idle": idle},
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


OF_THE_ANSWERS: tuple[Check, ...] = (
    errors,
    answered_before_read,
    never_in,
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
        "Its answers tell neither a length nor chunks: each costs a connection, and one that is cut off looks whole.",
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


# Was it the generator? Its CPU, its lateness, its connections, its build.


LAG_TOLD = 0.1
"""Share of a percentile that is the generator's lateness: a tenth is three times what repeats of a run differ
by.
"""
LAG_INVALID = 0.5
"""From here on the figure is more ours than the server's."""
LAG_LEAST_MS = 0.5
"""Below this no decision about a server turns on it."""
PAUSE_MS = 10.0
"""Virtual machines pause for 3 to 9 ms, and a server on them pauses as well: such a lag at p99 makes that p99
doubtful (a NOTE), a longer one the run."""


def generator_saturated(evidence: Evidence) -> Flag | None:
    """The generator had no CPU left, so throughput and latency are its own."""
    facts = evidence.facts
    if not facts.generator_saturated:
        return None
    share = facts.generator_cpu_s / max(facts.duration_s * facts.generator_threads, 1e-9)
    who = "The generator" if facts.driver == "velodrome" else f"The generator {facts.driver}"
    whose = "its core" if facts.generator_threads == 1 else f"its {facts.generator_threads} cores"
    return Flag(
        FlagKind.GENERATOR_SATURATED,
        Severity.INVALID,
        f"{who} used {percent(min(share, 1.0))} of {whose}: these figures are its limit, not the server's.",
        "Give it more threads (-t) on CPUs of their own, or load from another machine.",
        {"cpu_share": share, "threads": facts.generator_threads},
    )


def lagged(evidence: Evidence) -> Flag | None:
    """Requests went out late although a connection was free, by more than the latency shown can bear."""
    shares = {}
    for percentile in ("p50", "p99"):
        lag, due = getattr(evidence.facts.lag, percentile), getattr(evidence.facts.due, percentile)
        if lag and due and lag > LAG_LEAST_MS and lag / due > LAG_TOLD:
            shares[percentile] = (lag / due, lag, due)
    if not shares:
        return None
    name = max(shares, key=lambda percentile: shares[percentile][0])
    _, late, shown = shares[name]
    spoilt = [
        lag
        for name, (share, lag, _) in shares.items()
        if share > LAG_INVALID and (name == "p50" or lag > PAUSE_MS)
    ]
    return Flag(
        FlagKind.GENERATOR_LAGGED,
        Severity.INVALID if spoilt else Severity.NOTE,
        f"The generator itself sent late: its own lag at {name} is {milliseconds(late)}, "
        f"and the latency shown there {milliseconds(shown)}.",
        "Read latency from when requests were sent, give the generator a CPU of its own, or lower the rate.",
        {"percentile": name, "lag_ms": late, "due_ms": shown},
    )


def capped(evidence: Evidence) -> Flag | None:
    """An open loop whose connections were all in use is a closed loop from then on.

    Little's law: rate x latency requests are in flight, each on a connection. Where the recipe's waiting and the
    link alone need more than allowed, no server can carry the load; otherwise the server was slow, and latency
    from due says so.
    """
    pace, facts = evidence.load.pace, evidence.facts
    if not isinstance(pace, Open):
        return None
    latency_ms = facts.sent.mean or 0.0
    needed = pace.rate * latency_ms / 1e3
    least_ms = evidence.wait_ms + evidence.rtt_ms
    impossible = pace.rate * least_ms / 1e3 > pace.connections
    if not impossible and needed < pace.connections and "capped-by-connections" not in facts.engine_flags:
        return None
    shown_ms = least_ms if impossible else latency_ms
    needed = pace.rate * shown_ms / 1e3
    facts_of_it = {
        "connections": pace.connections,
        "needed": needed,
        "rate": pace.rate,
        "latency_ms": shown_ms,
    }
    if needed <= pace.connections:
        return Flag(
            FlagKind.CAPPED_BY_CONNECTIONS,
            Severity.NOTE,
            f"All {count(pace.connections)} connections were in use for a time, and requests waited for one: "
            "latency from due has that wait in it, latency from sent has not.",
            "Allow more connections, or compare at a lower rate.",
            facts_of_it,
        )
    return Flag(
        FlagKind.CAPPED_BY_CONNECTIONS,
        Severity.INVALID if impossible else Severity.NOTE,
        f"All {count(pace.connections)} connections were in use: {count(pace.rate)}/s × "
        f"{milliseconds(shown_ms)} "
        f"needs {count(needed)}, so requests waited for a connection and the rate was not kept.",
        f"Allow {count(needed * 1.2)} connections or more; "
        "if throughput stays as it is, the server is at its limit.",
        facts_of_it,
    )


def debug_build(evidence: Evidence) -> Flag | None:
    """An engine without optimisation costs several times the CPU."""
    if not evidence.facts.generator_debug:
        return None
    return Flag(
        FlagKind.DEBUG_BUILD,
        Severity.INVALID,
        "The engine is a debug build: it is several times slower than the real one.",
        "Build it with `make dev`, which optimises.",
    )


OF_THE_GENERATOR: tuple[Check, ...] = (debug_build, generator_saturated, lagged, capped)


# Was it the database? Real servers beside the one under test share the CPUs of the load and can use them up.


SHARE_TOLD = 0.8
"""Of the CPUs they are on: with one so busy what comes in waits several times as long as it is served.

Of a queue with one server the mean time inside is service time / (1 - utilisation): five times at 80 %, twenty at 95 %
(M/M/1; Kleinrock, «Queueing Systems» I, 1975, section 3.2).
"""
SHARE_INVALID = 0.95
"""From here on the rate is what these CPUs can do, not the server under test."""


def companions_saturated(evidence: Evidence) -> Flag | None:
    """Databases, and who shares their CPUs, had none left: throughput and latency are theirs."""
    beside = evidence.sampled.beside_cpu_s
    if not beside:
        return None
    used_s = sum(beside.values()) + (evidence.upstream.cpu_s if evidence.upstream else 0.0)
    if evidence.beside_load:
        used_s += evidence.facts.generator_cpu_s
    share = used_s / max(evidence.sampled.span_s * evidence.beside_cpus, 1e-9)
    if share < SHARE_TOLD:
        return None
    most = max(beside, key=lambda name: beside[name])
    others = " with the generator" if evidence.beside_load else ""
    return Flag(
        FlagKind.COMPANION_SATURATED,
        Severity.INVALID if share >= SHARE_INVALID else Severity.NOTE,
        f"What the server asks ({', '.join(beside)}) used{others} {percent(min(share, 1.0))} of the CPUs it is on, "
        f"{most} the most: these figures are its limit as much as the server's.",
        "Ask less of it for each request, lower the load, or name one on another machine (--database).",
        {"cpu_share": share, "most": most, "cpu_s": beside[most]},
    )


OF_THE_COMPANIONS: tuple[Check, ...] = (companions_saturated,)


# Was it the link? Its lateness, its own losses, its rate, and the CPU it shares with the generator.


LATE_TOLD, LATE_INVALID = 0.1, 0.5
"""Shares of the latency shown, as for a generator that sends late."""
LINK_LATE_LEAST_MS = 0.5
"""Of a round trip; below this no decision about a server turns on it."""
LINK_PAUSE_MS = 10.0
"""Virtual machines pause for 3 to 9 ms, and a server on them pauses as well: a p99 is doubtful then, not the run."""
FULL = 0.95
"""Of the CPUs that generator and relay share: what is left goes to waking up."""

BROAD = 0.9
"""Of the rate of a bottleneck: what is left is lost to losses and to TCP's looking for it."""


def full(evidence: Evidence) -> Flag | None:
    """The bottleneck carried all it can one way: whoever answers, no more comes through."""
    link, rate = evidence.link, evidence.rate_mbit
    if link is None or not rate or not evidence.facts.duration_s:
        return None
    ways = ((link.there, "to the server"), (link.back, "back"))
    share, towards = max((_carried(way, evidence.facts.duration_s) / rate, towards) for way, towards in ways)
    if share < BROAD:
        return None
    return Flag(
        FlagKind.LINK_FULL,
        Severity.NOTE,
        f"The link was the limit: it carried {percent(min(share, 1.0))} of its {count(rate)} Mbit/s {towards}.",
        "Servers differ here only in what they send. To see them, give the link a higher rate, or lower the load.",
        {"share": share, "rate_mbit": rate},
    )


def _carried(way: WayFacts, seconds: float) -> float:
    """Megabits a second that came out at the other end; what was lost was as large as the rest."""
    out = way.packets - (way.lost or 0) - way.dropped
    return way.bytes * (out / max(way.packets, 1)) * 8e-6 / seconds


def late(evidence: Evidence) -> Flag | None:
    """Packets came out later than asked, by more than the latency shown can bear: twice in a round trip."""
    link, due = evidence.link, evidence.facts.due
    if link is None:
        return None
    told, invalid = [], False
    for name, one_way, shown in (("p50", link.late_p50_ms, due.p50), ("p99", link.late_p99_ms, due.p99)):
        both = 2 * (one_way or 0.0)
        if shown and both > LINK_LATE_LEAST_MS and both > LATE_TOLD * shown:
            told.append((both / shown, name, both, shown))
            invalid |= both > LATE_INVALID * shown and (name == "p50" or both > LINK_PAUSE_MS)
    if not told:
        return None
    _, name, both, shown = max(told)
    return Flag(
        FlagKind.LINK_LATE,
        Severity.INVALID if invalid else Severity.NOTE,
        f"The link itself was late: it added up to {milliseconds(both)} to a round trip at {name}, "
        f"and the latency shown there is {milliseconds(shown)}.",
        "Give the generator more CPUs (its relay runs there), or lower the load.",
        {"percentile": name, "late_ms": both, "due_ms": shown},
    )


def overran(evidence: Evidence) -> Flag | None:
    """The link lost packets that nobody had asked it to lose."""
    link = evidence.link
    if link is None or not link.overrun:
        return None
    return Flag(
        FlagKind.LINK_LATE,
        Severity.INVALID,
        f"The link lost {count(link.overrun)} packets because it did not keep up, besides those it was told to lose.",
        "Give the generator more CPUs (its relay runs there), lower the load, or give the link a rate.",
        {"overrun": link.overrun},
    )


def crowded(evidence: Evidence) -> Flag | None:
    """Generator and relay had used up the CPUs they share, so throughput and latency are theirs."""
    link, facts = evidence.link, evidence.facts
    if link is None or link.cpu_s is None or facts.generator_saturated:
        return None
    share = (facts.generator_cpu_s + link.cpu_s) / max(facts.duration_s * evidence.load_cpus, 1e-9)
    if share < FULL:
        return None
    return Flag(
        FlagKind.GENERATOR_SATURATED,
        Severity.INVALID,
        f"Generator and link used {percent(min(share, 1.0))} of the CPUs they share: these figures are their limit, "
        "not the server's.",
        "Give the generator more CPUs, or load from fewer connections.",
        {"cpu_share": share, "threads": facts.generator_threads},
    )


OF_THE_LINK: tuple[Check, ...] = (crowded, late, overran, full)


# Did the machine belong to this trial: steal, other programs, swap; and was the third party on time?


STEAL_TOLD, STEAL_INVALID = 0.01, 0.05
"""Shares of all CPUs. What is stolen may all be the server's: on two CPUs 5 % can be a tenth of its time."""
OTHER_TOLD, OTHER_INVALID = 0.05, 0.15
"""Shares of all CPUs: what the server's CPU loses if other work lands anywhere. 15 % is four times the spread
of throughput between repeats (3.5 %)."""
SWAP_BYTES = 1 << 20
"""A page or two may go at any time; a megabyte within seconds is a machine short of memory."""
LATE_SHARE = 0.05
"""Of the time a request waits by its recipe: half the tolerance of Little's law."""
LATE_LEAST_MS = 1.0
"""Below this nothing that waits on a third party can be told apart."""


def steal(evidence: Evidence) -> Flag | None:
    """CPU that this virtual machine's host gave to others."""
    stolen = evidence.sampled.host.steal_s
    share = (stolen or 0.0) / _all_cpu_s(evidence)
    if share < STEAL_TOLD:
        return None
    return Flag(
        FlagKind.CPU_STEAL,
        Severity.INVALID if share >= STEAL_INVALID else Severity.NOTE,
        f"The host of this virtual machine gave {percent(share)} of its CPU to others during the run.",
        "Run again at a quieter time, or on a machine of your own; CPU per request suffers less than "
        "requests/s.",
        {"steal_s": stolen or 0.0, "share": share},
    )


def other_load(evidence: Evidence) -> Flag | None:
    """CPU that programs outside the trial used."""
    host = evidence.sampled.host
    share = (host.other_cpu_s or 0.0) / _all_cpu_s(evidence)
    if share < OTHER_TOLD:
        return None
    most = f", '{host.busiest_other}' most of all" if host.busiest_other else ""
    return Flag(
        FlagKind.OTHER_LOAD,
        Severity.INVALID if share >= OTHER_INVALID else Severity.NOTE,
        f"Other programs used {percent(share)} of this machine's CPU during the run{most}.",
        "Close them and run again; CPU per request suffers less than requests/s.",
        {"other_cpu_s": host.other_cpu_s or 0.0, "share": share, "busiest": host.busiest_other},
    )


def swapped(evidence: Evidence) -> Flag | None:
    """Memory went to or came from disk."""
    size = evidence.sampled.host.swapped_bytes or 0
    if size < SWAP_BYTES:
        return None
    return Flag(
        FlagKind.SWAPPED,
        Severity.NOTE,
        f"The machine moved {size / 1e6:,.0f} MB between memory and disk during the run.",
        "Give it more memory, or the server fewer workers.",
        {"swapped_bytes": size},
    )


def upstream_late(evidence: Evidence) -> Flag | None:
    """The simulated third party answered later than it was told to."""
    upstream = evidence.upstream
    if upstream is None or not upstream.requests:
        return None
    allowed = max(LATE_LEAST_MS, evidence.wait_ms * LATE_SHARE)
    middle, tail = upstream.late_p50_ms or 0.0, upstream.late_p99_ms or 0.0
    if max(middle, tail) <= allowed:
        return None
    return Flag(
        FlagKind.UPSTREAM_LATE,
        Severity.INVALID if middle > allowed else Severity.NOTE,
        f"The simulated third party answered late: by {milliseconds(middle)} at p50 and "
        f"{milliseconds(tail)} at p99, "
        f"where {milliseconds(allowed)} is allowed. Part of this latency is its own.",
        "Give it a CPU of its own, or fewer requests.",
        {"late_p50_ms": middle, "late_p99_ms": tail, "allowed_ms": allowed},
    )


def _all_cpu_s(evidence: Evidence) -> float:
    return max(evidence.sampled.span_s * evidence.machine_cpus, 1e-9)


OF_THE_MACHINE: tuple[Check, ...] = (steal, other_load, swapped, upstream_late)


# Do the figures agree with each other, and with themselves over time?


LITTLE = 0.1
"""Relative: three times the spread of throughput between repeats on a small virtual machine (3.5 %)."""
LITTLE_LEAST = 0.5
"""Requests in flight: below one of them, a mean of samples is too coarse to judge by."""
REOPENED = 0.01
"""Connections opened again per request: from here on the server closes them as a habit."""
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
BEHIND = 0.1
"""Share of the requests due that were still owed at the end of the span."""


def littles_law(evidence: Evidence) -> Flag | None:
    """Mean concurrency must be throughput x mean latency (Little 1961, doi:10.1287/opre.9.3.383).

    Closed loop: the connections asked for. Open loop: requests in flight as sampled, where the server kept up
    (the law is about a steady state, which a rate that changes has not). Requests that straddle the ends of the
    span are worth latency / duration, which is allowed for; in a closed loop the longest latency, because each
    connection has one of them, and a server that prefers some connections lets the others wait longest. Where
    connections are opened for single requests the time from due counts: opening is in it.
    """
    facts = evidence.facts
    opening = not evidence.load.keepalive or (facts.connections_reopened or 0) > REOPENED * facts.requests
    from_due = opening and evidence.closed and facts.due.mean is not None
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
    asked = facts.at_once or (evidence.closed.connections * evidence.load.streams if evidence.closed else 0)
    actual = float(asked) if evidence.closed else facts.mean_in_flight
    if actual is None:
        return None
    longest_s = max(latency_s, (latency.max or 0.0) / 1e3) if evidence.closed else latency_s
    allowed = actual * (LITTLE + longest_s / max(facts.duration_s, 1e-9)) + LITTLE_LEAST
    if abs(by_law - actual) <= allowed:
        return None
    whose = "connections were asked for" if evidence.closed else "requests were in flight on average"
    whose = "messages to all were kept on their way" if evidence.closed and facts.at_once else whose
    return Flag(
        FlagKind.LITTLES_LAW,
        Severity.INVALID,
        f"{count(facts.throughput_rps)}/s × {milliseconds(mean_ms)} makes {count(by_law)} requests in "
        "flight, "
        f"but {count(actual)} {whose}: one of these figures is not what it seems.",
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
    owed = 1 - facts.throughput_rps / pace.rate
    # Of few arrivals the number itself scatters: three standard deviations of a Poisson count.
    scatter = 3 / math.sqrt(max(pace.rate * facts.duration_s, 1.0)) if pace.arrivals == "poisson" else 0.0
    if owed <= BEHIND + natural + scatter:
        return None
    return Flag(
        FlagKind.NOT_STATIONARY,
        Severity.INVALID,
        f"The server carried {count(facts.throughput_rps)}/s of the {count(pace.rate)}/s asked: its queue "
        "grew to the "
        "end, so this latency tells how long the run was.",
        f"Compare latency at a rate all can carry, below {count(facts.throughput_rps * 0.8)}/s for this one.",
        {"throughput_rps": facts.throughput_rps, "rate": pace.rate},
    )


def trend(evidence: Evidence) -> Flag | None:
    """Throughput (closed loop) or p50 (open loop) that rises or falls all through the span.

    Mann-Kendall test (Mann 1945, doi:10.2307/1907187) for its presence, Theil-Sen slope (Sen 1968,
    doi:10.1080/01621459.1968.10480934) for its size: neither minds one odd second.
    """
    facts = evidence.facts
    if isinstance(evidence.load.pace, Schedule):
        return None  # what is asked changes, so what comes of it does
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


CHECKS = (
    *OF_THE_SERVER,
    *OF_THE_ANSWERS,
    *OF_THE_FORM,
    *OF_THE_GENERATOR,
    *OF_THE_COMPANIONS,
    *OF_THE_LINK,
    *OF_CONSISTENCY,
    *OF_THE_MACHINE,
)


def flags(evidence: Evidence) -> tuple[Flag, ...]:
    """Return every flag the evidence calls for, the server's first, at most one of each kind and check."""
    return tuple(flag for check in CHECKS if (flag := check(evidence)) is not None)
