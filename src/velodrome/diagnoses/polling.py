"""Requests that wait for each other in pauses: each looks again after a fixed time, and nobody wakes it."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown, filling
from velodrome.guest.injected.pauses import TOOK
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Statement, Symptoms, Watched

AT_ONCE = 0.5
"""Requests that are in a pause under load, on average, from which on it is looked into."""
ALONE = 0.5
"""Of the pauses of a request under load, those of one that is alone: with more it waits for no other one in them."""
SHORTER, LONGER = 0.1, 2.0
"""Times as long as they are, in the two experiments."""
SECONDS = 2.0


def screen(seen: Symptoms) -> Screened:
    """Look for pauses that requests make under load, and hardly if they are alone."""
    watched, alone = seen.watched, seen.watched_alone
    if watched is None or alone is None or not watched.followed_s or not alone.followed_s:
        return Unknown("in which pauses requests wait could not be seen")
    if not watched.pauses:
        return Absent("requests make no pauses")
    usual = {pause.place: _each_s(alone, pause) for pause in alone.pauses}
    among_others = [
        pause for pause in watched.pauses if usual.get(pause.place, 0.0) <= ALONE * _each_s(watched, pause)
    ]
    worst = max(among_others, key=lambda pause: pause.seconds, default=None)
    if worst is None:
        return Absent("a request that is alone makes the same pauses")
    at_once = worst.seconds / watched.followed_s
    sentence = (
        f"{significant(at_once, 2)} requests at once are in a pause at {worst.place} ({worst.text}), "
        f"{significant(1000 * _each_s(watched, worst), 2)} ms of each request and "
        f"{significant(1000 * usual.get(worst.place, 0.0), 2)} ms of one that is alone"
    )
    evidence = (Evidence("statements", sentence, {"pause": vars(worst), "at_once": at_once}),)
    if at_once < AT_ONCE:
        return Absent(sentence, evidence)
    return Suspect(0.7, sentence, _experiments(seen, worst), evidence, loss=0.5)


def _each_s(watched: Watched, pause: Statement) -> float:
    """Return for how long each request is in it."""
    return pause.seconds / (watched.followed_s * watched.rps) if watched.rps else 0.0


def _experiments(seen: Symptoms, pause: Statement) -> tuple[Experiment, ...]:
    file, _, line = pause.place.rpartition(":")
    cure = Cure(
        "wait for what wakes the waiter (a lock, a condition, a queue; of Redis BLPOP) in place of looking again after "
        "a pause, or at least make it shorter: redis-py's Lock has sleep=0.1 unless it is given another one",
        pause.place,
        pause.text,
    )

    def taking(times: float) -> Treatment:
        about = f"pauses at {pause.place} take {significant(times)} times as long"
        return Treatment(about, {TOOK: {"file": file, "line": int(line), "times": times}})

    metrics = ("rps", "p50_ms", "p99_ms")
    connections = filling(seen)
    return (
        Experiment(taking(SHORTER), connections, cure, metrics, refutes=False, seconds=SECONDS),
        Experiment(taking(LONGER), connections, cure, metrics, "dose", seconds=SECONDS),
    )


fault = Fault(
    "polling",
    "requests sleep and look again whether they may go on, though what they wait for was free long before: wake them",
    ("field practice",),
    "A request waits for another one in pauses of a fixed length, at the end of which it looks again.",
    "With pauses that are a tenth as long throughput, the median or the p99 is better; or, where that changes nothing, "
    "worse with longer ones.",
    screen,
)
