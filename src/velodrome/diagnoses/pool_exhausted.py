"""A pool of database connections smaller than the requests that want one: SQLAlchemy's has 5 + 10, psycopg's 4."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from velodrome.diagnoses.fault import (
    Absent,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    is_about,
    lacks,
    no_plateau,
    plateau,
    stops_at,
)
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms

SIZE = 200
MOST_CONNECTIONS = 80
"""In flight at once: PostgreSQL serves 100 connections to a database unless it is set otherwise, MySQL 151."""
DRIVERS = frozenset({"asyncpg", "aiomysql"})
"""Packages that SQLAlchemy uses without their pools."""


@dataclass(frozen=True)
class Pool:
    """Of database connections, by the package that has it."""

    name: str
    default: int
    """Connections where nobody says otherwise."""
    larger: str
    """How one makes it of `{}` connections."""


POOLS = {
    "sqlalchemy": Pool("SQLAlchemy's pool", 15, "create_engine(…, pool_size={})"),
    "asyncpg": Pool("asyncpg's pool", 10, "asyncpg.create_pool(…, max_size={})"),
    "psycopg_pool": Pool("psycopg's pool", 4, "ConnectionPool(…, max_size={})"),
    "aiomysql": Pool("aiomysql's pool", 10, "aiomysql.create_pool(…, maxsize={})"),
}
"""Those that a treatment makes larger; where several packages are imported the first is likelier to be the app's own.
SQLAlchemy's is 5, and 10 of overflow."""
REDIS = Pool("redis-py's pool that waits", 50, "BlockingConnectionPool(…, max_connections={})")
"""No request keeps a connection of it between two commands."""
DEFAULT = POOLS["sqlalchemy"].default


def screen(seen: Symptoms) -> Screened:
    """Look for a plateau while nothing computes, in an app with a pool."""
    if seen.watched is None:
        return no_plateau(seen) or Unknown("what it imports could not be seen")
    imported = [*pools_of(seen.watched.libraries), *([REDIS] if "redis" in seen.watched.libraries else ())]
    if not imported:
        return Absent(
            "no package is imported whose pool can be treated: SQLAlchemy, asyncpg, psycopg_pool, aiomysql, redis"
        )
    if (bound := no_plateau(seen)) is not None:
        return bound
    assert seen.slope is not None
    k = seen.slope.in_work
    default = next((pool for pool in imported if is_about(k, pool.default)), None)
    pool = default or imported[0]
    cure = Cure(
        "give connections back before the request waits for something else, and size the pool for the requests in work",
        "where the pool is made",
        f"{significant(k.mid, 2)} connections at once",
        pool.larger.format(max(2 * round(k.mid), pool.default)),
    )
    treatment = Treatment(f"pools of {SIZE} connections", {"database-pools": SIZE})
    return Suspect(
        0.7 if default else 0.4,
        f"{significant(k.mid)} requests in work, and {pool.name}",
        (Experiment(treatment, beyond(seen), cure, raises=True),),
        plateau(seen),
        loss=0.5,
    )


def pools_of(libraries: Collection[str]) -> Iterator[Pool]:
    """Yield the pools that an app may have, by what it imports; the likeliest first."""
    for package, pool in POOLS.items():
        if package in libraries and not ("sqlalchemy" in libraries and package in DRIVERS):
            yield pool


def beyond(seen: Symptoms) -> int:
    """Return how many connections of a load want more of a pool than it has."""
    most = 2 * seen.slope.plateau.connections if seen.slope is not None else 0
    return min(max(most, 3 * DEFAULT), MOST_CONNECTIONS)


def glance(seen: Symptoms) -> str:
    """Look for as many requests in work as SQLAlchemy's pool has connections."""
    sentence = "" if lacks(seen, "sqlalchemy") else stops_at(seen, DEFAULT)
    return sentence and f"{sentence}: SQLAlchemy's pool has {DEFAULT} connections"


fault = Fault(
    "pool-exhausted",
    "throughput stops while nothing computes: requests wait for a database connection; release earlier, or size it",
    ("hindsight#2942", "langflow#14340"),
    "Requests wait for a connection of the pool.",
    "With a larger pool throughput goes on rising. Pools of SQLAlchemy, asyncpg, psycopg, aiomysql and "
    "redis-py can be treated.",
    screen,
    glance=glance,
)
