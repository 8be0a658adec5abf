"""A pool of database connections smaller than the requests that want one: SQLAlchemy's has 5 + 10."""

from velodrome.diagnoses.fault import (
    Absent,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    lacks,
    no_plateau,
    plateau,
    stops_at,
)
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Symptoms

SIZE = 200
MOST_CONNECTIONS = 128
DEFAULT = 15
"""Connections of SQLAlchemy's pool, where nobody says otherwise: 5, and 10 of overflow."""


def screen(seen: Symptoms) -> Screened:
    """Look for a plateau while nothing computes, in an app with a pool."""
    if (bound := no_plateau(seen)) is not None:
        return bound
    assert seen.slope is not None
    if seen.watched is None:
        return Unknown("what it imports could not be seen")
    if "sqlalchemy" not in seen.watched.libraries:
        return Absent("no SQLAlchemy is imported, whose pool is the one that can be treated")
    k = seen.slope.in_work
    cure = Cure(
        "give connections back before the request waits for something else, and size the pool for the requests in work",
        "where the engine is made",
        f"{significant(k.mid, 2)} connections at once",
        f"create_engine(…, pool_size={max(2 * round(k.mid), DEFAULT)})",
    )
    treatment = Treatment(f"pools of {SIZE} connections", {"sqlalchemy-pool": SIZE})
    connections = min(max(2 * seen.slope.plateau.connections, 3 * DEFAULT), MOST_CONNECTIONS)
    default = k.low <= DEFAULT * 1.1 and k.high >= DEFAULT * 0.9
    return Suspect(
        0.7 if default else 0.4,
        f"{significant(k.mid)} requests in work, and SQLAlchemy's pool",
        (Experiment(treatment, connections, cure, takes="sqlalchemy-pool"),),
        plateau(seen),
        loss=0.5,
    )


def glance(seen: Symptoms) -> str:
    """Look for as many requests in work as SQLAlchemy's pool has connections."""
    sentence = "" if lacks(seen, "sqlalchemy") else stops_at(seen, DEFAULT)
    return sentence and f"{sentence}: SQLAlchemy's pool has {DEFAULT} connections"


fault = Fault(
    "pool-exhausted",
    "throughput stops while nothing computes: requests wait for a database connection; release earlier, or size it",
    ("hindsight#2942", "langflow#14340"),
    "Requests wait for a connection of the pool.",
    "With a larger pool throughput goes on rising. Pools of SQLAlchemy can be treated.",
    screen,
    glance=glance,
)
