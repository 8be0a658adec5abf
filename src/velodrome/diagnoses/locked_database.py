"""A database in one file that refuses a second writer at once, in place of having it wait."""

from velodrome.diagnoses.fault import Fault, Screened, failing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms

WAITS_S = 20.0


def screen(seen: Symptoms) -> Screened:
    """Look whether requests fail as soon as several are in flight."""
    cure = Cure(
        "let a writer wait for its turn from the beginning of its transaction, and readers not wait for writers at all",
        "where the database is opened",
        'a short timeout, or transactions that read and then write, which SQLite never lets wait: "database is locked"',
        "sqlite3.connect(file, timeout=20), `PRAGMA journal_mode=WAL`, and `BEGIN IMMEDIATE` for what writes (of "
        "Django the OPTIONS `transaction_mode` and `timeout`)",
    )
    waits = Treatment(
        f"SQLite waits {WAITS_S:g} s for a lock, and transactions take it when they begin",
        {"sqlite-waits": WAITS_S},
    )
    return failing(seen, waits, cure)


fault = Fault(
    "locked-database",
    "«database is locked» as soon as two write: they do not wait for their turn; a timeout, BEGIN IMMEDIATE, WAL",
    ("Anthias#3015",),
    "Requests in flight together write to one file, and who finds it locked fails.",
    "With a long timeout of SQLite's connections, and transactions that take the lock when they begin, requests in "
    "flight together do not fail.",
    screen,
)
