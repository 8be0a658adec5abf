"""Awaits one after another that do not need each other: a request takes the sum of them, and not the longest."""

from collections import defaultdict
from collections.abc import Sequence

from velodrome.diagnoses.fault import (
    WITHOUT_LOOP,
    Absent,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    third_party_evidence,
    without_loop,
)
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Run, Symptoms, Waits, Watched

LEAST = 0.1
"""Share of the time of a request that is alone, from which on it matters what it waits beyond the longest await."""
CONNECTIONS = 4
SEQUENCE = 1.5
"""Calls that follow each other in one request, from which on they do."""


def screen(seen: Symptoms) -> Screened:
    """Look for awaits beside each other in which a request that is alone spends its time."""
    watched, awaits = seen.watched_alone, not without_loop(seen)
    if awaits and (watched is None or not watched.looked_s):
        return Unknown("where a request that is alone waits could not be seen")
    found = _places(watched) if awaits and watched is not None else {}
    evidence = third_party_evidence(seen)
    if not found:
        if seen.stepped is not None and seen.stepped.in_sequence >= SEQUENCE:
            return Unknown(
                f"a request makes {significant(seen.stepped.in_sequence, 2)} calls of third parties one after the "
                "other, and whether they need each other cannot be seen from outside"
            )
        why = (
            "a request does not wait in awaits that could be made at the same time"
            if awaits
            else WITHOUT_LOOP
        )
        return Absent(why, evidence)
    assert watched is not None
    run, waits = max(found.items(), key=lambda item: sum(wait.seconds for wait in item[1]))
    share = min(sum(wait.seconds for wait in waits) / watched.looked_s, 1.0)
    sentence = f"a request that is alone waits for {share:.0%} of the time at {run.place}: {run.before}"
    data = {"places": [[wait.place, wait.seconds] for wait in waits], "of_s": watched.looked_s}
    cure = Cure(
        "begin them all, and await them together; where they share a session of a database, with one each",
        run.place,
        run.before,
        run.after,
    )
    gathered = Treatment(f"awaits at {run.place} at once", {"gathered": [run.document()]})
    return Suspect(
        min(0.9, 0.4 + share),
        sentence,
        (Experiment(gathered, CONNECTIONS, cure, ("p50_ms", "rps")),),
        (Evidence("stack", sentence, data), *evidence),
        loss=share / 2,
    )


def _places(watched: Watched) -> dict[Run, list[Waits]]:
    """Return the runs in which time goes that a request would not wait if their awaits were at once."""
    every: dict[Run, list[Waits]] = defaultdict(list)
    for wait in watched.waits:
        if wait.run is not None:
            every[wait.run].append(wait)
    least_s = LEAST * watched.looked_s
    return {run: waits for run, waits in every.items() if _beyond_longest_s(run, waits) >= least_s}


def _beyond_longest_s(run: Run, waits: Sequence[Waits]) -> float:
    """Return for how long requests wait that are in awaits of a run beside the longest; in a loop any may be that."""
    seconds = [wait.seconds for wait in waits]
    return sum(seconds) if run.loops else sum(seconds) - max(seconds)


fault = Fault(
    "serial-awaits",
    "a request takes the sum of its calls: awaits one after another that do not need each other; gather",
    ("field practice",),
    "A request waits for one call after the other, although none needs what another one brings.",
    "With those awaits at once that do not read what an earlier one brings, as their source has it, the median or "
    "throughput is better. Awaits without a result, and those in other functions, are left as they are.",
    screen,
    steps=True,
)
