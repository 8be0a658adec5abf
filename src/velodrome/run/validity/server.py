"""Was it the server, all of it, and the same one throughout?"""

from velodrome.model.measurement import Flag, FlagKind, Severity, WorkerUse
from velodrome.run.validity.evidence import Check, Evidence, count, percent

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


CHECKS: tuple[Check, ...] = (
    died,
    restarted,
    foreign_listener,
    queue_overflowed,
    burns_at_rest,
    unequal_workers,
)
