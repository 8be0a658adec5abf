"""A greenlet that waits in code which gevent has not patched, such as a driver in C: all other greenlets stand."""

from velodrome.diagnoses.blocking_call import dose, each_s, stacks_of, worst_place
from velodrome.diagnoses.fault import Absent, Experiment, Fault, Screened, Suspect, Unknown, filling
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms

LEAST = 0.02
"""Share of the time in which the hub's thread was blocked, from which on it is looked into."""


def screen(seen: Symptoms) -> Screened:
    """Look for a place that blocks the thread of gevent's hub while nothing computes."""
    watched = seen.watched
    if watched is None or not watched.seconds:
        return Unknown("no heartbeat came out of its processes")
    if not watched.loop.startswith("gevent"):
        return Absent("gevent's hub does not run in its processes")
    share = watched.blocked_s / watched.seconds
    sentence = f"gevent's hub is blocked for {share:.0%} of the time"
    if share < LEAST:
        return Absent(sentence, stacks_of(watched, watched.held_up[:1]))
    place, stacks = worst_place(watched.held_up, lambda held_up: held_up.blocked_s)
    worst = max(stacks, key=lambda held_up: held_up.blocked_s)
    named = worst.named
    if not named.own:
        return Unknown(f"{sentence}, outside of the app's own code")
    connections = filling(seen)
    cure = Cure(
        "use a driver in Python, which gevent patches, or one that lets others run while it waits "
        "(psycogreen for psycopg2); or call it in gevent's threads",
        named.place,
        named.text.strip(),
        "gevent.get_hub().threadpool.apply(…)",
    )
    found = []
    if named.column is not None:
        moved = Treatment(f"{named.place} in a thread of gevent's", {"in-green-thread": [named.site()]})
        found.append(Experiment(moved, connections, cure, ("rps", "p99_ms")))
    longer = dose(named, each_s(seen, place, stacks), connections, cure)
    return Suspect(
        min(0.95, 0.5 + share),
        f"{sentence}, most of it at {place}",
        (*found, longer),
        stacks_of(watched, [worst]),
        loss=min(share, 0.9),
    )


fault = Fault(
    "driver-not-green",
    "a gevent worker stands while one request waits: a driver in C, or what was imported before the patch; a green one",
    ("commcare-hq#7706", "psycopg#536"),
    "Greenlets wait because the one that runs waits in code that does not let others run.",
    "Moved to a thread of gevent's, the call costs other requests nothing: throughput or p99 is better. Where it "
    "cannot be moved from outside, it is made twice as long: throughput is worse.",
    screen,
)
