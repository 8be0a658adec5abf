"""A collection of the oldest generation goes through the whole heap while nothing else runs."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Called, Collected, Symptoms

LONG_S, LEAST = 0.05, 0.03
"""A collection is long from here on. Long ones that take a smaller part of the time are met by too few requests for an
experiment to show them: of fifty apps examined none with less had this fault."""
MUCH = 0.08
"""Of the time, from which on short ones are looked into, too."""
CONNECTIONS = 8
SECONDS = 2.0
BY_HAND, FROZEN = "gc.collect(", "gc.collect(); gc.freeze()"


def is_much(found: Collected) -> bool:
    """Whether throughput or p99 may show it."""
    return found.share >= MUCH or (found.longest_s >= LONG_S and found.share >= LEAST)


def _by_hand(seen: Symptoms) -> Called | None:
    """Return the line of the app's own that collects, where threads are met in one."""
    lines = seen.watched.lines if seen.watched is not None else ()
    return next((line for line in lines if BY_HAND in line.text), None)


def screen(seen: Symptoms) -> Screened:
    """Look for long collections, or many."""
    found = seen.collected or (seen.watched.collected if seen.watched else None)
    if found is None:
        return Unknown("no heartbeat came out of its processes")
    sentence = (
        f"the whole heap was collected for {found.share:.1%} of the time, "
        f"at most for {significant(1000 * found.longest_s)} ms at once"
    )
    evidence = Evidence(
        "counter",
        sentence,
        {"collections_s": found.collections_s, "longest_s": found.longest_s, "of_s": found.seconds},
    )
    if not is_much(found):
        return Absent(sentence, (evidence,))
    cure = Cure(
        "collect once and freeze what is left when the app is warm, so that later collections do not visit it",
        "where the app is ready: after it has loaded what it keeps",
        "the collector visits the whole heap",
        FROZEN,
    )
    if by_hand := _by_hand(seen):
        cure = Cure(
            "leave it to the collector when to collect, and freeze what is there when the app is warm",
            by_hand.place,
            by_hand.text,
            f"no collection in a request; where the app is ready: {FROZEN}",
        )
    frozen = Treatment("gc.freeze() when warm", {"collector": "freeze"})
    return Suspect(
        min(0.9, 0.5 + found.share),
        sentence,
        (Experiment(frozen, CONNECTIONS, cure, ("rps", "p99_ms"), seconds=SECONDS),),
        (evidence,),
        loss=min(found.share, 0.9),
    )


fault = Fault(
    "gc-pause",
    "regular peaks of p99: collections of a large heap; gc.freeze() when the app is warm",
    ("sglang#9241",),
    "Requests wait while the garbage collector goes through what the app keeps for good.",
    "With gc.freeze() when the app is warm, throughput or p99 is better.",
    screen,
    collects=is_much,
)
