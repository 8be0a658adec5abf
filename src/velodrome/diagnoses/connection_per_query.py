"""No pool: a connection to the database is opened for each request, with its handshakes and its login."""

from velodrome.diagnoses.fault import Doing, Experiment, Fault, Screened, Suspect, doing, filling
from velodrome.guest.injected.statements import OPENING
from velodrome.model.diagnosis import Cure, Evidence, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Statement, Symptoms, Watched

KEPT = 32
"""Connections that the treated arm keeps, and as many besides when all are taken."""
EACH = 0.5
"""Connections for each request, from which on it is looked into."""
METRICS = ("rps", "cpu_us")


def screen(seen: Symptoms) -> Screened:
    """Look for connections to a database that are made while requests are served."""
    found = doing(seen, "connecting", "the making of connections to a database")
    kept = Treatment("connections kept", {"kept-connections": KEPT})

    def experiment(connections: int, where: str, line: str) -> Experiment:
        what = "keep connections: a pool in the process, or one beside it (PgBouncer)"
        cure = Cure(what, where, *_change(seen, line))
        return Experiment(kept, connections, cure, METRICS, needless=True)

    if isinstance(found, Doing):
        line = found.called.text if found.called else ""
        where = found.where("where the engine is made, or the settings of the database")
        return found.suspect(experiment(found.connections, where, line))
    alone = seen.watched_alone
    if alone is None or (opened := _opened(alone)) is None:
        return found
    # What a new connection costs is the first statement on it as well, and what the app does with each.
    often = significant(opened.each, 2)
    sentence = f"{opened.place} opens {often} connections to a database for each request: {opened.text}"
    evidence = Evidence("statements", sentence, {"statements": [vars(opened)]})
    return Suspect(
        0.4, sentence, (experiment(filling(seen), opened.place, opened.text),), (evidence,), loss=0.2
    )


def _change(seen: Symptoms, line: str) -> tuple[str, str]:
    """Return what is there, and what is to be in its place, by what the app imports; a `line` of its own opens it."""
    libraries = seen.watched.libraries if seen.watched is not None else frozenset()
    if "django.db" in libraries:
        # On an event loop each request has a context of its own, and finds no connection of another.
        if seen.setting.awaits:
            return "CONN_MAX_AGE: …, whatever it is", "OPTIONS: {'pool': True}, or PgBouncer"
        return "CONN_MAX_AGE: 0", "CONN_MAX_AGE: None"
    if "sqlalchemy" in libraries:
        return "poolclass=NullPool", "create_engine(…) with its usual pool, once"
    return line or "a connection for each request", "a pool, or a connection for each thread that stays open"


def _opened(watched: Watched) -> Statement | None:
    """Return where a request opens a connection of its own; None: most requests open none."""
    opened = [statement for statement in watched.statements if statement.normalized == OPENING]
    often = max(opened, key=lambda statement: statement.each, default=None)
    return often if often is not None and often.each >= EACH else None


fault = Fault(
    "connection-per-query",
    "20 to 500 ms for each query: a connection to the database is opened each time; keep them in a pool",
    ("treeherder#1925",),
    "Requests wait for a new connection to the database.",
    "With connections that are kept (a pool for SQLAlchemy's NullPool, Django's left open, those of drivers handed out "
    "again), throughput or CPU time per request is better.",
    screen,
)
