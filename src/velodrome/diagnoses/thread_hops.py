"""Short functions are handed to threads for nothing: the two switches cost more than what they compute."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown, filling
from velodrome.guest.injected.hops import TOOK
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Hop, Symptoms, Watched

WALL, MORE_MS = 1.5, 0.05
"""Times its CPU time, and some more, that a thread may be in a function that waits for nothing."""
MOST_MS = 0.3
"""CPU time of a call from which on a thread is the place for it: the loop serves nobody meanwhile."""
LEAST = 1.5
"""Calls in threads for each request, from which on they are looked into: one alone, a plain endpoint's, is usual."""
BUSY = 0.5
"""Of the CPUs that its interpreters can use, from which on what a switch costs can matter."""
SWITCHED_MS = 0.05
"""About what two switches cost."""


def screen(seen: Symptoms) -> Screened:
    """Look for functions that a request which is alone has called in threads, and that only compute, and shortly.

    Under load a thread is in a function also while it waits for the interpreter's lock.
    """
    alone = seen.watched_alone
    if alone is None or not alone.followed_s or seen.slope is None:
        return Unknown("what is called in threads for a request that is alone could not be seen")
    if not alone.hops:
        return Absent("no function of the app's own is called in a thread of AnyIO's")
    short = tuple(hop for hop in alone.hops if _only_computes(hop) and not _asks(alone, hop))
    if not short:
        longest = alone.hops[0]
        return Absent(
            f"what is called in threads waits or computes there, such as {longest.place} ({longest.text}) for "
            f"{significant(longest.mean_ms, 2)} ms, {significant(longest.cpu_ms, 2)} ms of it on a CPU",
            (Evidence("threads", "calls in threads", _data(alone.hops)),),
        )
    each, worst, others = sum(hop.each for hop in short), short[0], len(short) - 1
    also = f", and {others} other{'s' if others > 1 else ''} like it" if others else ""
    sentence = (
        f"AnyIO calls {significant(each, 2)} short functions in threads for each request: {worst.place} "
        f"({worst.text}), which takes {significant(worst.mean_ms, 2)} ms{also}"
    )
    evidence = (Evidence("threads", sentence, _data(short)),)
    top = seen.slope.plateau
    if each < LEAST or not (seen.computes or top.cpus >= BUSY * min(seen.workers, seen.server_cpus)):
        return Absent(f"{sentence}; at most throughput {top.cpus:.2f} CPUs are in use", evidence)
    sites = [
        {"file": file, "line": int(line)} for file, _, line in (hop.place.rpartition(":") for hop in short)
    ]
    experiment = Experiment(
        Treatment("short functions called on the event loop", {TOOK: sites}),
        filling(seen),
        _cure(worst, others),
        ("rps", "cpu_us", "p50_ms"),
    )
    cpu_ms = 1000 * top.cpus / top.rps if top.rps else 0.0
    loss = min(each * SWITCHED_MS / cpu_ms, 0.8) if cpu_ms else 0.3
    return Suspect(0.6, sentence, (experiment,), evidence, loss)


def _only_computes(hop: Hop) -> bool:
    """Return whether a function waits for nothing, computes shortly, and gives nothing back behind a `yield`.

    What it gives back may be a connection, or a transaction, and that waits at times.
    """
    return not hop.yields and hop.mean_ms <= WALL * hop.cpu_ms + MORE_MS and hop.cpu_ms < MOST_MS


def _asks(alone: Watched, hop: Hop) -> bool:
    """Return whether a function itself sends statements to a database, which elsewhere may be one to wait for."""
    file = hop.place.rpartition(":")[0]
    return any(
        (sent.place.rpartition(":")[0], sent.function) == (file, hop.function) for sent in alone.statements
    )


def _data(hops: tuple[Hop, ...]) -> dict[str, object]:
    return {"hops": [vars(hop) for hop in hops]}


def _cure(worst: Hop, others: int) -> Cure:
    """Return how to have it called on the loop, by what it is."""
    others_too = ", and the others," if others else ""
    if worst.text.startswith("class "):
        return Cure(
            f"an async def that makes it{others_too} as the dependency: a class is made in a thread",
            worst.place,
            f"Depends({worst.function})",
            f"async def made(…): return {worst.function}(…)  # Depends(made)",
        )
    after = f"async {worst.text}" if worst.text.startswith("def ") else "await it as an async def"
    return Cure(
        f"make it{others_too} an async def: it waits for nothing, and is called on the event loop then",
        worst.place,
        worst.text,
        after,
    )


fault = Fault(
    "thread-hops",
    "short functions are handed to threads for nothing: def dependencies, classes and endpoints; async def",
    ("field practice",),
    "Each request pays for switches to threads and back that cost more than what is computed there.",
    "With these functions called on the event loop throughput, CPU time per request or the median is better.",
    screen,
)
