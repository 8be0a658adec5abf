"""No pool: a connection to the database is opened for each request, with its handshakes and its login."""

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, doing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms

KEPT = 32
"""Connections that the treated arm keeps, and as many besides when all are taken."""


def screen(seen: Symptoms) -> Screened:
    """Look for connections to a database that are made while requests are served."""
    found = doing(seen, "connecting", "the making of connections to a database")
    if not isinstance(found, Doing):
        return found
    cure = Cure(
        "keep connections: a pool in the process, or one beside it (PgBouncer)",
        "where the engine is made, or the settings of the database",
        "poolclass=NullPool; CONN_MAX_AGE: 0",
        "create_engine(…) with its usual pool; CONN_MAX_AGE: None",
    )
    kept = Treatment("connections kept", {"kept-connections": KEPT})
    return found.suspect(Experiment(kept, found.connections, cure, takes="kept-connections", needless=True))


fault = Fault(
    "connection-per-query",
    "20 to 500 ms for each query: a connection to the database is opened each time; keep them in a pool",
    ("treeherder#1925",),
    "Requests wait for a new connection to the database.",
    "With connections that are kept (a pool for SQLAlchemy's NullPool, CONN_MAX_AGE for Django), throughput is better.",
    screen,
)
