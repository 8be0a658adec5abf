"""Whether what surrounds the server spoilt the measurement: the generator, databases, the link, the machine."""

from collections.abc import Callable
from dataclasses import dataclass

from velodrome.model.bottleneck import generator_fault
from velodrome.model.load import Closed, Load, Open
from velodrome.model.measurement import (
    SHARED_NOTED,
    SHARED_SPOILS,
    AnswerForm,
    CpuLosses,
    Flag,
    FlagKind,
    HostFacts,
    IdleFacts,
    LinkFacts,
    LoadFacts,
    Severity,
    UpstreamFacts,
    WayFacts,
)
from velodrome.model.quantity import significant
from velodrome.run.measuring.sampler import Sampled

FAILURES = ("refused", "reset", "timeout", "bad_status", "wrong_body", "bad_protocol")
"""Outcomes that are a server's fault. `unfinished` is none: every closed loop ends with requests in flight.
"""


REOPENED = 0.01
"""Connections opened again per request: from here on the server closes them as a habit."""


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
    """Of the link, as configured; 0: loopback."""
    rate_mbit: float | None = None
    """Of the link's bottleneck, each way; None: none was configured."""
    load_cpus: int = 1
    """CPUs that generator and relay share."""
    beside_cpus: int = 1
    """CPUs that third party and databases share."""
    beside_load: bool = True
    """Whether the generator is on these as well."""
    shared_share: float = 0.0
    """The largest share of one of the server's CPUs that was used by what measures it."""
    wait_ms: float = 0.0
    """What a request waits at least, by its recipe; 0: not known."""
    workers: int | None = None
    """Requested worker processes; None: the stack has no such knob."""
    idle: IdleFacts | None = None
    """Connections held beside the load; None: none were requested."""
    form: AnswerForm | None = None
    """How the server writes its answers; None: not looked at."""
    exit_status: int | None = None
    """Of the server, when it ended before it was stopped."""

    @property
    def closed(self) -> Closed | None:
        """The pace, if it is a closed loop."""
        return self.load.pace if isinstance(self.load.pace, Closed) else None

    @property
    def reopens(self) -> bool:
        """Whether connections are opened for single requests: the load closes them, or the server does by habit."""
        return (
            not self.load.keepalive or (self.facts.connections_reopened or 0) > REOPENED * self.facts.requests
        )

    @property
    def failures(self) -> int:
        """Requests that came to anything but a right answer or the end of the run."""
        return sum(self.facts.outcomes.get(outcome, 0) for outcome in FAILURES)


Check = Callable[[Evidence], Flag | None]


def count(number: float) -> str:
    """Write a number for people: `4,000`, `12.5`, `0.031`; three digits are more than any of them deserve."""
    if number >= 100 or number == int(number):
        return f"{number:,.0f}"
    return significant(number)


def percent(share: float) -> str:
    """Write a share as per cent, one digit below ten: `98 %`, `1.2 %`."""
    return f"{share * 100:.0f} %" if share >= 0.1 else f"{share * 100:.1f} %"


def milliseconds(value: float) -> str:
    """Write milliseconds: `0.31 ms`, `12 ms`, `3,980 ms`."""
    return f"{value:,.0f} ms" if value >= 100 else f"{significant(value, 2)} ms"


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
doubtful (a NOTE), a longer pause the run."""


def generator_saturated(evidence: Evidence) -> Flag | None:
    """The generator had no CPU left, so throughput and latency are its own."""
    facts = evidence.facts
    share = facts.generator_cpu_share
    if generator_fault(share) is None:
        return None
    who = "The generator" if facts.driver == "velodrome" else f"The generator {facts.driver}"
    if facts.loaders:
        who = f"The generator of agent {max(facts.loaders, key=lambda loader: loader.cpu_share or 0.0).name}"
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
    latest = max(evidence.facts.loaders, key=lambda loader: loader.lag_p99_ms or 0.0, default=None)
    for percentile in ("p50", "p99"):
        lag, due = getattr(evidence.facts.lag, percentile), getattr(evidence.facts.due, percentile)
        if percentile == "p99" and lag and latest is not None:
            lag = max(lag, latest.lag_p99_ms or 0.0)  # among all requests its part may lie beyond the p99
        if lag and due and lag > LAG_LEAST_MS and lag / due > LAG_TOLD:
            shares[percentile] = (lag / due, lag, due)
    if not shares:
        return None
    name = max(shares, key=lambda percentile: shares[percentile][0])
    _, late, shown = shares[name]
    who = "The generator itself" if latest is None else f"The generator of agent {latest.name}"
    spoilt = [
        lag
        for name, (share, lag, _) in shares.items()
        if share > LAG_INVALID and (name == "p50" or lag > PAUSE_MS)
    ]
    return Flag(
        FlagKind.GENERATOR_LAGGED,
        Severity.INVALID if spoilt else Severity.NOTE,
        f"{who} sent late: its own lag at {name} is {milliseconds(late)}, "
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
            f"All {count(pace.connections)} connections were in use for a time, and requests waited for a connection: "
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


def agent_lost(evidence: Evidence) -> Flag | None:
    """An agent went, and with it its part of the load: what is measured is another load than that requested."""
    lost = [loader for loader in evidence.facts.loaders if loader.lost]
    if not lost:
        return None
    return Flag(
        FlagKind.AGENT_LOST,
        Severity.INVALID,
        f"Agent {lost[0].name} was lost during the load ({lost[0].lost}), which ended with it.",
        "Look at it with velodrome cluster; with all agents there again, --resume goes on.",
        {"agent": lost[0].name, "lost": len(lost)},
    )


def debug_build(evidence: Evidence) -> Flag | None:
    """An engine without optimisation costs several times the CPU."""
    if not evidence.facts.generator_debug:
        return None
    return Flag(
        FlagKind.DEBUG_BUILD,
        Severity.INVALID,
        "The engine is a debug build: it is several times slower than a release build.",
        "Build it with `make dev`, which optimises.",
    )


OF_THE_GENERATOR: tuple[Check, ...] = (agent_lost, debug_build, generator_saturated, lagged, capped)


# Was it the database? Real servers beside the server under test share the CPUs of the load and can use them up.


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
        f"The services that the server uses ({', '.join(beside)}) used{others} {percent(min(share, 1.0))} of the CPUs "
        f"they run on, {most} the most: these figures show their limit as much as the server's.",
        "Use them less in each request, lower the load, or name a service on another machine (--database).",
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
    """Packets came out later than configured, by more than the latency shown can bear: twice in a round trip."""
    link, due = evidence.link, evidence.facts.due
    if link is None:
        return None
    late, invalid = [], False
    for name, one_way, shown in (("p50", link.late_p50_ms, due.p50), ("p99", link.late_p99_ms, due.p99)):
        both = 2 * (one_way or 0.0)
        if shown and both > LINK_LATE_LEAST_MS and both > LATE_TOLD * shown:
            late.append((both / shown, name, both, shown))
            invalid |= both > LATE_INVALID * shown and (name == "p50" or both > LINK_PAUSE_MS)
    if not late:
        return None
    _, name, both, shown = max(late)
    return Flag(
        FlagKind.LINK_LATE,
        Severity.INVALID if invalid else Severity.NOTE,
        f"The link itself was late: it added up to {milliseconds(both)} to a round trip at {name}, "
        f"and the latency shown there is {milliseconds(shown)}.",
        "Give the generator more CPUs (its relay runs there), or lower the load.",
        {"percentile": name, "late_ms": both, "due_ms": shown},
    )


def overran(evidence: Evidence) -> Flag | None:
    """The link lost packets beyond its configured loss."""
    link = evidence.link
    if link is None or not link.overrun:
        return None
    return Flag(
        FlagKind.LINK_LATE,
        Severity.INVALID,
        f"The link lost {count(link.overrun)} packets because it did not keep up, besides those that it is configured "
        "to lose.",
        "Give the generator more CPUs (its relay runs there), lower the load, or give the link a rate.",
        {"overrun": link.overrun},
    )


def crowded(evidence: Evidence) -> Flag | None:
    """Generator and relay had used up the CPUs they share, so throughput and latency are theirs."""
    link, facts = evidence.link, evidence.facts
    if link is None or link.cpu_s is None or generator_fault(facts.generator_cpu_share) is not None:
        return None
    share = (facts.generator_cpu_s + link.cpu_s) / max(facts.duration_s * evidence.load_cpus, 1e-9)
    if generator_fault(share) is None:
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
"""Shares of the CPUs of the server, or of the generator: a server that is busy does as much less. 5 % is more than
repeats differ by (3.5 %)."""
OTHER_REPORTED, OTHER_INVALID = 0.05, 0.15
"""Shares of the same. 15 % is four times that spread: others take turns with the server, and may take those that it
had no use for."""
SWAP_BYTES = 1 << 20
"""A page or two may go at any time; a megabyte within seconds is a machine short of memory."""
LATE_SHARE = 0.05
"""Of the time a request waits by its recipe: half the tolerance of Little's law."""
LATE_LEAST_MS = 1.0
"""Below this nothing that waits on a third party can be distinguished."""


def steal(evidence: Evidence) -> Flag | None:
    """CPU that this virtual machine's host gave to others."""
    share, whose = most_lost(evidence.sampled, evidence.machine_cpus, lambda lost: lost.steal_s)
    if share < STEAL_TOLD:
        return None
    return Flag(
        FlagKind.CPU_STEAL,
        Severity.INVALID if share >= STEAL_INVALID else Severity.NOTE,
        f"The host of this virtual machine gave {percent(share)} of {whose} to others during the run.",
        "Run again at a quieter time, or on a machine of your own; CPU per request suffers less than "
        "requests/s.",
        {"steal_s": evidence.sampled.host.steal_s or 0.0, "share": share, "of": whose},
    )


def other_load(evidence: Evidence) -> Flag | None:
    """CPU that programs outside the trial used."""
    host = evidence.sampled.host
    share, whose = most_lost(evidence.sampled, evidence.machine_cpus, lambda lost: lost.other_cpu_s)
    if share < OTHER_REPORTED:
        return None
    most = f", '{host.busiest_other}' most of all" if host.busiest_other else ""
    return Flag(
        FlagKind.OTHER_LOAD,
        Severity.INVALID if share >= OTHER_INVALID else Severity.NOTE,
        f"Other programs used {percent(share)} of {whose} during the run{most}.",
        "Close them and run again; CPU per request suffers less than requests/s.",
        {"other_cpu_s": host.other_cpu_s or 0.0, "share": share, "of": whose, "busiest": host.busiest_other},
    )


def cpu_shared(evidence: Evidence) -> Flag | None:
    """The load, or what the server calls, used a good part of a CPU that is the server's too."""
    share = evidence.shared_share
    if share < SHARED_NOTED:
        return None
    spoils = share >= SHARED_SPOILS
    effect = "are as much theirs as the server's" if spoils else "would be higher on CPUs of its own"
    return Flag(
        FlagKind.CPU_SHARED,
        Severity.INVALID if spoils else Severity.NOTE,
        f"What measures the server used {percent(share)} of a CPU that it shares with it: requests per second "
        f"{effect}, CPU per request is the server's own.",
        "Give the server fewer CPUs (--cpus), so that the load has its own, or measure on a larger machine.",
        {"share": share},
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
    """The simulated third party answered later than configured."""
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


def most_lost(
    sampled: Sampled, machine_cpus: int, lost: Callable[[CpuLosses | HostFacts], float | None]
) -> tuple[float, str]:
    """Return the larger of the shares that the CPUs of server and generator lost, and whose they are, as words.

    Where single CPUs are not reported, the share of all CPUs of the machine.
    """
    host = sampled.host
    parties = (("the server's", host.server_cpus), ("the generator's", host.load_cpus))
    shares = [
        (seconds / max(sampled.span_s * len(of.cpus), 1e-9), f"{whose} CPU{'s' if len(of.cpus) > 1 else ''}")
        for whose, of in parties
        if of is not None and (seconds := lost(of)) is not None
    ]
    everywhere = (lost(host) or 0.0) / max(sampled.span_s * machine_cpus, 1e-9), "this machine's CPUs"
    return max(shares, key=lambda found: found[0], default=everywhere)


OF_THE_MACHINE: tuple[Check, ...] = (steal, other_load, cpu_shared, swapped, upstream_late)
