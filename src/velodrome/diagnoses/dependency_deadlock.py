"""Threads that wait for a connection hold all tokens, and who has a connection needs a token to give it back."""

from velodrome.diagnoses.fault import Absent, Counting, Fault, Screened, counting, lacks
from velodrome.diagnoses.pool_exhausted import SIZE
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

COUNT = 128
"""Requests at once: more than AnyIO's 40 threads and the connections of a usual pool together."""
TOKENS = 400
LEAST = 0.1
"""Share of them that hang, from which on it is looked into."""


def look(setting: Setting) -> Probe | None:
    """Send many requests at once to a server with an event loop."""
    if not setting.awaits:
        return None
    return Probe(
        "hang",
        f"{COUNT} requests at once",
        "never answered",
        {"count": COUNT},
        seconds=2.5,
        hides=True,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether requests hang while nothing computes."""
    probe = look(seen.setting)
    if probe is None:
        return Absent("no event loop serves, which AnyIO's threads are beside")
    none = Absent("requests take too long to tell those that hang from those that are slow")
    found = counting(seen, "dependency-deadlock", probe, LEAST, none)
    if not isinstance(found, Counting):
        return found
    cure = Cure(
        "let nobody wait for a connection in a thread that others need to give theirs back: as many connections as "
        "threads, a dependency that is async, or one that opens and closes its connection in the endpoint itself",
        "where the engine is made, or the `yield` dependency",
        "def session(): …; yield one  # opened, used and closed in three turns of AnyIO's 40 threads",
        "create_engine(…, pool_size=40), or anyio.to_thread.current_default_thread_limiter().total_tokens below the "
        "pool's size",
    )
    pools = Treatment(f"pools of {SIZE} connections", {"database-pools": SIZE})
    tokens = Treatment(f"{TOKENS} AnyIO tokens", {"anyio-tokens": TOKENS})
    experiments = (found.cured(pools, cure), found.cured(tokens, cure))
    return found.suspect(0.8, *experiments, loss=0.95)


def glance(seen: Symptoms) -> str:
    """Look for throughput that falls to nothing from some requests in flight on, while nothing is computed."""
    counted = seen.counted
    if counted is None or counted.hangs_from is None or not seen.setting.awaits or lacks(seen, "anyio"):
        return ""
    return f"next to nothing is answered with {counted.hangs_from} requests in flight, and no CPU is used"


fault = Fault(
    "dependency-deadlock",
    "hangs without CPU above some requests in flight: a yield dependency needs a thread that all waiters hold",
    ("fastapi#3205", "fastapi#15372"),
    "Requests that wait for a connection hold all of AnyIO's threads, and those that have one need a thread to go on.",
    "With more connections in the pool than requests (SQLAlchemy's), none hangs; of other pools, with more threads.",
    screen,
    look=look,
    glance=glance,
)
