"""A database in one file that refuses a second writer at once, in place of having it wait."""

from velodrome.diagnoses.fault import Fault, Screened, failing
from velodrome.model.diagnosis import Cure, Treatment
from velodrome.model.symptoms import Symptoms

WAITS_S = 20.0


def screen(seen: Symptoms) -> Screened:
    """Look whether requests fail as soon as several are in flight."""
    cure = Cure(
        "let a writer wait for its turn, and readers not wait for writers at all",
        "where the database is opened",
        'sqlite3.connect(file, timeout=0), or a short timeout: "database is locked"',
        "sqlite3.connect(file, timeout=20) and `PRAGMA journal_mode=WAL`",
    )
    waits = Treatment(f"SQLite waits {WAITS_S:g} s for a lock", {"sqlite-timeout": WAITS_S})
    return failing(seen, waits, cure)


fault = Fault(
    "locked-database",
    "«database is locked» as soon as two write: SQLite does not wait for its turn; a timeout, and WAL",
    ("Anthias#3015",),
    "Requests in flight together write to one file, and who finds it locked fails.",
    "With a long timeout of SQLite's connections requests in flight together do not fail.",
    screen,
)
