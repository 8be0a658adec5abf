"""A collection of the oldest generation goes through the whole heap while nothing else runs."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms

LONG_S = 0.05
SHARE = 0.08
"""Of the time: from either on it is looked into. A heartbeat in the process alone makes for 30 ms and 4 %."""
CONNECTIONS = 8
SECONDS = 2.0


def screen(seen: Symptoms) -> Screened:
    """Look for long collections, or many."""
    watched = seen.watched
    if watched is None or not watched.seconds:
        return Unknown("no heartbeat came out of its processes")
    share = watched.collections_s / watched.seconds
    longest_ms = 1000 * watched.longest_collection_s
    sentence = (
        f"the whole heap was collected for {share:.1%} of the time, "
        f"at most for {significant(longest_ms)} ms at once"
    )
    evidence = Evidence(
        "counter",
        sentence,
        {
            "collections_s": watched.collections_s,
            "longest_s": watched.longest_collection_s,
            "of_s": watched.seconds,
        },
    )
    if watched.longest_collection_s < LONG_S and share < SHARE:
        return Absent(sentence, (evidence,))
    cure = Cure(
        "collect once and freeze what is left when the app is warm, so that later collections do not visit it",
        "where the app is ready: after it has loaded what it keeps",
        "the collector visits the whole heap",
        "gc.collect(); gc.freeze()",
    )
    frozen = Treatment("gc.freeze() when warm", {"collector": "freeze"})
    return Suspect(
        min(0.9, 0.5 + share),
        sentence,
        (Experiment(frozen, CONNECTIONS, cure, ("rps", "p99_ms"), takes="collector", seconds=SECONDS),),
        (evidence,),
        loss=min(share, 0.9),
    )


fault = Fault(
    "gc-pause",
    "regular peaks of p99: collections of a large heap; gc.freeze() when the app is warm",
    ("sglang#9241",),
    "Requests wait while the garbage collector goes through what the app keeps for good.",
    "With gc.freeze() when the app is warm, throughput or p99 is better.",
    screen,
)
