"""A pool of connections that raises where it has none left, in place of having the request wait: redis-py's."""

from velodrome.diagnoses.fault import Fault, Screened, failing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms

SIZE = 2000


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


fault = Fault(
    "pool-raises",
    "errors from some number in flight on: redis-py's pool raises in place of waiting; a blocking pool",
    ("redis-py#2517",),
    "A request that finds every connection of the pool in use gets an error.",
    "With a larger pool of redis-py requests in flight together do not fail.",
    screen,
)
