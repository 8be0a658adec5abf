"""A pool of connections that raises where it has none left, in place of having the request wait: redis-py's."""

from velodrome.diagnoses.fault import Fault, Screened, failing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms

SIZE = 2000
MOST_IN_FLIGHT = 512
"""Above this a limit of open files is likelier."""


def screen(seen: Symptoms) -> Screened:
    """Look whether requests fail from some number in flight on."""
    cure = Cure(
        "a pool that waits for a connection, or one as large as the requests in flight",
        "where the client is made",
        "redis.ConnectionPool(max_connections=…): «Too many connections»",
        "redis.BlockingConnectionPool(max_connections=…, timeout=5)",
    )
    larger = Treatment(f"pools of redis-py with {SIZE} connections", {"redis-connections": SIZE})
    return failing(seen, larger, cure)


def glance(seen: Symptoms) -> str:
    """Look for requests that fail from some number in flight on, where redis-py is installed."""
    counted = seen.counted
    if counted is None or counted.fails_from is None or "redis" not in counted.packages:
        return ""
    if counted.fails_from > MOST_IN_FLIGHT:
        return ""
    return (
        f"requests fail from {counted.fails_from} in flight on, and redis-py is installed, whose pools raise"
    )


fault = Fault(
    "pool-raises",
    "errors from some number in flight on: redis-py's pool raises in place of waiting; a blocking pool",
    ("redis-py#2517",),
    "A request that finds every connection of the pool in use gets an error.",
    "With a larger pool of redis-py requests in flight together do not fail.",
    screen,
    glance=glance,
)
