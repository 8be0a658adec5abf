"""A pool of connections that raises where it has none left, and does not wait for one: redis-py's, peewee's."""

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
        "redis.ConnectionPool(max_connections=…), playhouse.pool.Pooled…Database(max_connections=…), psycopg2.pool",
        "redis.BlockingConnectionPool(max_connections=…, timeout=5); Pooled…Database(…, timeout=5)",
    )
    larger = Treatment(f"pools that raise with {SIZE} connections", {"raising-pools": SIZE})
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
    "errors from some number in flight on: a pool of redis-py, peewee or psycopg2 raises; one that waits",
    ("redis-py#2517",),
    "A request that finds every connection of the pool in use gets an error.",
    "With a larger pool of redis-py, peewee or psycopg2 requests in flight together do not fail.",
    screen,
    glance=glance,
)
