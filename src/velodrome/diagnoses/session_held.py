"""A connection, or a lock, of a database that is held while a third party is waited for: capacity is pool ÷ latency."""

from collections.abc import Sequence
from dataclasses import replace

from velodrome.diagnoses.fault import (
    Absent,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    filling,
    plateau,
    statements_longer,
    third_party_evidence,
)
from velodrome.diagnoses.pool_exhausted import MOST_CONNECTIONS, SIZE, beyond, pools_of
from velodrome.guest.injected.statements import OPENING
from velodrome.model.bottleneck import USED_UP
from velodrome.model.diagnosis import Cure, Evidence, Treatment, slower_third_parties
from velodrome.model.quantity import Interval, significant
from velodrome.model.symptoms import Slope, Statement, Stepped, Symptoms, Waits, Watched

BOUND = 0.7
"""Of the requests in flight: so many calls at once, or more, are bound by nothing but these."""
WAITING, TIMES = 0.5, 5.0
"""Requests that are at a statement at once, and how many times as long as alone it takes, from which on it waits."""
SECONDS = 2.0
"""Of a load in which each request waits for all others."""


def screen(seen: Symptoms) -> Screened:
    """Look whether throughput follows the latency of third parties, in an app with a pool of connections."""
    if seen.watched is None:
        return Unknown("what it imports could not be seen")
    evidence = third_party_evidence(seen)
    if (locked := _locked(seen, evidence)) is not None:
        return locked
    pools = [pool.name for pool in pools_of(seen.watched.libraries)]
    if not pools:
        return (
            _held(seen, evidence)
            or _of_its_own(seen)
            or Absent("no pool of database connections is imported that is known", evidence)
        )
    if seen.stepped is None:
        return Unknown(
            "no third party is seen whose latency could be stepped: it is called by no client that is known; name "
            "those that it calls with --upstream"
        )
    if why := _not_held(seen.stepped, min(seen.workers, seen.server_cpus)):
        return Absent(why, evidence)
    # Who is alone waits for no connection: most of its time is that of the call.
    alone = seen.watched_alone.waits if seen.watched_alone is not None else ()
    cure = _close_before(next((wait for wait in (*alone, *seen.watched.waits) if wait.inner), None))
    larger = Treatment(f"pools of {SIZE} connections", {"database-pools": SIZE})
    connections = max(min(seen.stepped.connections, MOST_CONNECTIONS), beyond(seen))
    return Suspect(
        0.95,
        f"{_follows(seen.stepped)}, and {pools[0]}",
        (Experiment(larger, connections, cure, raises=True),),
        (*evidence, *plateau(seen)),
        loss=0.6,
    )


def _close_before(call: Waits | None) -> Cure:
    return Cure(
        "end the transaction, or close the session, before the slow call, and open another one after it: a larger "
        "pool only moves the limit",
        f"before {call.place} ({call.text})" if call else "before the call of the third party",
        "the session is held while the third party is waited for",
        "await session.close()  # before the call; or session.commit()",
    )


def _held(seen: Symptoms, evidence: tuple[Evidence, ...]) -> Suspect | None:
    """Look for tasks that have a connection while they wait for a third party, and for others that wait for them.

    Whoever waits in the queue has none: with a bound that is no pool, such as a semaphore, those would have one too, or
    nobody.
    """
    stepped, watched, slope = _stepped(seen), seen.watched, seen.slope
    if not seen.setting.awaits or stepped is None or watched is None or slope is None:
        return None
    queue = watched.longest_queue
    call = next((wait for wait in watched.waits if wait.inner and wait.holds), None)
    if queue is None or queue.holds or call is None:
        return None
    sentence = (
        f"{_follows(stepped)}; tasks that wait at {call.place} ({call.text}) have {call.holds} meanwhile, and up to "
        f"{queue.most} others, which have none, wait at {queue.place} ({queue.text})"
    )
    longer = slower_third_parties(2.0, stepped.before.waited_ms if stepped.by_clients else 0.0)
    dose = Experiment(
        longer, filling(seen), _close_before(call), ("rps",), "dose", most_rps=_most_rps(seen, slope, None)
    )
    found = Evidence(
        "waits", sentence, {"holds": vars(call) | {"run": None}, "waits": vars(queue) | {"run": None}}
    )
    return Suspect(0.95, sentence, (dose,), (*evidence, found, *plateau(seen)), loss=0.6)


def _locked(seen: Symptoms, evidence: tuple[Evidence, ...]) -> Suspect | None:
    """Look for a statement that waits for others under load: for what they have locked, and hold across the call."""
    stepped, watched, slope = _stepped(seen), seen.watched, seen.slope
    slots = seen.setting.slots if not seen.setting.awaits else None
    if stepped is None or watched is None or slope is None or not _fewer(stepped, slots):
        return None
    waits = _waits_for_others(watched, seen.watched_alone)
    if waits is None:
        return None
    statement, at_once = waits
    sentence = (
        f"{_follows(stepped)}, and {significant(at_once, 2)} at once wait at {statement.place}: "
        f"{statement.normalized}, which is short when a request is alone"
    )
    cure = Cure(
        "end the transaction before the slow call, and begin another one after it; or call first, and write then",
        statement.place,
        "the lock is held while the third party is waited for",
        "session.commit()  # before the call",
    )
    held = {statement.normalized: slope.alone_s}
    dose = statements_longer(held, ("held twice as long", "this statement followed"), filling(seen), cure)
    dose = replace(dose, most_rps=_most_rps(seen, slope, slots), seconds=SECONDS)
    found = Evidence("statements", sentence, {"statement": vars(statement), "at_once": at_once})
    return Suspect(0.95, sentence, (dose,), (*evidence, found, *plateau(seen)), loss=0.6)


def _most_rps(seen: Symptoms, slope: Slope, slots: int | None) -> Interval:
    """Return the throughput at which its CPUs are used up, or all its slots, by requests that wait for no other.

    It is as exact as the requests in work are known, which are throughput over that of one connection.
    """
    top, room, k = slope.plateau, min(seen.workers, seen.server_cpus), slope.in_work
    by_cpu = top.rps * room / max(top.cpus, 1e-3)
    most = by_cpu if slots is None else min(by_cpu, slots * slope.alone.rps)
    return Interval(most * k.low / k.mid, most, most * k.high / k.mid)


def _waits_for_others(watched: Watched, alone: Watched | None) -> tuple[Statement, float] | None:
    """Return the statement that requests are most in at once, of those that are short when a request is alone."""
    if alone is None or not alone.followed_s or not watched.followed_s or not watched.rps or not alone.rps:
        return None
    usual = {one.normalized: one.seconds / (alone.followed_s * alone.rps) for one in alone.statements}
    for statement in watched.statements:  # the longest first
        at_once = statement.seconds / watched.followed_s
        each_s = at_once / watched.rps
        if at_once < WAITING:
            return None
        alone_s = None if statement.normalized == OPENING else usual.get(statement.normalized)
        if alone_s is not None and each_s >= TIMES * alone_s:
            return statement, at_once
    return None


def _of_its_own(seen: Symptoms) -> Unknown | None:
    """Return what is known of a bound of the app's own: a queue of connections, a semaphore, a locked row."""
    stepped, watched = _stepped(seen), seen.watched
    if stepped is None or watched is None:
        return None
    follows = f"{_follows(stepped)}, and no pool is imported that is known"
    longest, slots = watched.longest_queue, seen.setting.slots
    if seen.setting.awaits:
        where = _queue(longest, watched.waits) if longest else ""
    elif slots is not None and _fewer(stepped, slots):
        where = (
            f", while its server has {slots} slots: something that so few can have is held across the call, such as a "
            "lock, or a row of a database that was locked before it"
        )
    else:
        return None  # the server's own threads or workers are the bound
    return Unknown(f"{follows}{where}")


def _queue(longest: Waits, waits: Sequence[Waits]) -> str:
    """Return where tasks wait for each other, and where those wait whom they wait for: never as many at once."""
    where = f"; most of the time tasks wait at {longest.place} ({longest.text})"
    ahead = next((wait for wait in waits if wait.inner and 1 < wait.most < longest.most), None)
    return (
        f"{where}, and no more than {ahead.most} at once at {ahead.place} ({ahead.text})" if ahead else where
    )


def _follows(found: Stepped) -> str:
    slots = significant(found.slots or 0.0)
    return f"throughput follows the latency of third parties, as if {slots} requests could call them at once"


def _fewer(found: Stepped, slots: int | None) -> bool:
    """Whether fewer requests call third parties at once than its server has slots; None: these bound nothing."""
    return slots is None or (found.slots or 0.0) <= BOUND * min(slots, found.connections)


def _stepped(seen: Symptoms) -> Stepped | None:
    """Return what slower third parties showed; None: they were not made slower, or nothing is held across calls."""
    found = seen.stepped
    return found if found and not _not_held(found, min(seen.workers, seen.server_cpus)) else None


def _not_held(found: Stepped, room: int) -> str:
    """Return why nothing is held across calls; empty: something is. `room`: CPUs that its processes can use."""
    if found.slots is None:
        return "throughput does not follow the latency of third parties"
    if found.slots > BOUND * found.connections:
        all_ = f"{significant(found.slots)} of {found.connections}"
        return f"as many requests call third parties at once as are in flight ({all_})"
    if found.before.cpus > USED_UP * room:
        return f"{found.before.cpus:.2f} CPUs are busy: these bound it"
    return ""


fault = Fault(
    "session-held",
    "«idle in transaction», capacity = pool ÷ latency of a third party: a session held across a slow call; close it",
    ("mcp-context-forge#2518",),
    "Requests wait for a connection, or a lock of the database, that others hold while they wait for a third party.",
    "When third parties take longer throughput falls in proportion (the connection is held across the call), and with "
    "a larger pool it rises (it is the connection that bounds it), or, where requests wait at a statement, it falls "
    "when that is held longer. Both have to be so. Of a pool of the app's own: who waits for the third party is seen "
    "to have a connection, and who waits for those has none.",
    screen,
    steps=True,
)
