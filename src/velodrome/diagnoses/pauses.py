"""Requests that wait for each other in pauses: they sleep and look again, or sleep with what others wait for."""

from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown, filling
from velodrome.guest.injected.pauses import TOOK
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Statement, Symptoms, Watched

AT_ONCE = 0.5
"""Requests that are in a pause under load, on average, from which on it is looked into."""
ALONE = 0.5
"""Of the pauses of a request under load, those of one that is alone: with more it waits for no other one in them."""
FEW = 0.5
"""Pauses for each request: where it makes fewer, they are no part of what each request does."""
SHORTER, LONGER = 0.1, 2.0
"""Times as long as they are, in the two experiments."""
SECONDS = 2.0
METRICS = ("rps", "p50_ms")


def screen(seen: Symptoms) -> Screened:
    """Look for pauses that requests make for others, or while others wait for them."""
    watched, alone = seen.watched, seen.watched_alone
    if watched is None or alone is None or not watched.followed_s or not alone.followed_s:
        return Unknown("in which pauses requests wait could not be seen")
    usual = {pause.place: _each_s(alone, pause) for pause in alone.pauses}

    def text(pause: Statement) -> str:
        at_once = significant(_at_once(watched, pause), 2)
        return (
            f"{at_once} requests at once are in a pause at {pause.place} ({pause.text}), "
            f"{significant(1000 * _each_s(watched, pause), 2)} ms of each request and "
            f"{significant(1000 * usual.get(pause.place, 0.0), 2)} ms of one that is alone"
        )

    long = [pause for pause in watched.pauses if _at_once(watched, pause) >= AT_ONCE]
    for pause in long:  # the longest first
        if usual.get(pause.place, 0.0) <= ALONE * _each_s(watched, pause):
            return _suspect(seen, pause, text(pause), _for_others(pause), (*METRICS, "p99_ms"))
    queue = watched.longest_queue
    for pause in long:
        if queue is not None and queue.place != pause.place and pause.each <= FEW and not seen.computes:
            waiting = f"; up to {queue.most} others wait at {queue.place} ({queue.text})"
            # Not by the p99, which is of those that make the pause.
            return _suspect(seen, pause, text(pause) + waiting, _meanwhile(pause, queue.place), METRICS)
    if not watched.pauses:
        return Absent("requests make no pauses")
    return Absent(text(watched.pauses[0]))


def _at_once(watched: Watched, pause: Statement) -> float:
    return pause.seconds / watched.followed_s


def _each_s(watched: Watched, pause: Statement) -> float:
    """Return for how long each request is in it."""
    return _at_once(watched, pause) / watched.rps if watched.rps else 0.0


def _for_others(pause: Statement) -> Cure:
    return Cure(
        "wait for what wakes the waiter (a lock, a condition, a queue; of Redis BLPOP) in place of looking again after "
        "a pause, or at least make it shorter: redis-py's Lock has sleep=0.1 unless it is given another one",
        pause.place,
        pause.text,
    )


def _meanwhile(pause: Statement, queue: str) -> Cure:
    return Cure(
        f"give back what others wait for at {queue} before the pause, and take it again behind it: around each "
        "attempt, and not around all of them",
        pause.place,
        pause.text,
    )


def _suspect(
    seen: Symptoms, pause: Statement, sentence: str, cure: Cure, metrics: tuple[str, ...]
) -> Suspect:
    file, _, line = pause.place.rpartition(":")

    def taking(times: float) -> Treatment:
        about = f"pauses at {pause.place} take {significant(times)} times as long"
        return Treatment(about, {TOOK: {"file": file, "line": int(line), "times": times}})

    connections = filling(seen)
    experiments = (
        Experiment(taking(SHORTER), connections, cure, metrics, refutes=False, seconds=SECONDS),
        Experiment(taking(LONGER), connections, cure, metrics, "dose", seconds=SECONDS),
    )
    return Suspect(
        0.7, sentence, experiments, (Evidence("statements", sentence, {"pause": vars(pause)}),), loss=0.5
    )


fault = Fault(
    "pauses",
    "requests wait for each other in pauses: they sleep and look again, or sleep with a slot that others wait for",
    ("field practice",),
    "A request waits for another one in pauses of a fixed length, or keeps in a pause what others wait for.",
    "With pauses that are a tenth as long throughput, the median or the p99 is better; or, where that changes nothing, "
    "worse with longer ones.",
    screen,
)
