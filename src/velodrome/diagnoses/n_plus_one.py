"""The same statement sent to a database again and again in one request, once for each row that another one returned."""

import re
from dataclasses import replace

from velodrome.diagnoses.fault import Absent, Fault, Screened, Suspect, Unknown, statements_longer
from velodrome.guest.injected.statements import OPENING
from velodrome.model.diagnosis import Cure, Evidence
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Statement, Symptoms, Watched

LEAST = 4.5
"""Times that one statement is sent from one place for each request, from which on it is looked into."""
SHARE = 0.15
"""Of the time of a request that is alone, in these statements, from which on it matters."""
MARK = "database"
"""What a thread is in that is in a library for databases."""


def screen(seen: Symptoms) -> Screened:
    """Look for a statement that a request which is alone sends many times from one place."""
    watched = seen.watched_alone
    if watched is None or not watched.followed_s or seen.slope is None:
        return Unknown("what a request that is alone sends to databases could not be seen")
    sent = [statement for statement in watched.statements if statement.normalized != OPENING]
    if not sent:
        return Absent("no statement was sent to a database by a library that is followed")
    often = [statement for statement in sent if statement.each >= LEAST]
    if not often:
        most = max(sent, key=lambda statement: statement.each)
        return Absent(f"no statement is sent more than {significant(most.each, 2)} times for each request")
    shares = sorted(((_share(watched, one), one) for one in often), key=lambda pair: -pair[0])
    share, (_, worst), others = min(sum(part for part, _ in shares), 1.0), shares[0], len(shares) - 1
    also = f", and {others} other{'s' if others > 1 else ''} 5 times or more" if others else ""
    sentence = (
        f"{worst.place} sends {significant(worst.each, 2)} times for each request: {_short(worst.normalized)}{also}; a "
        f"request that is alone spends {share:.0%} of its time in that, and in what the library does around it"
    )
    evidence = (Evidence("statements", sentence, {"statements": [vars(one) for _, one in shares]}),)
    if share < SHARE:
        return Absent(sentence, evidence)
    alone_s = seen.slope.alone_s  # without the heartbeat, which may slow it down
    more_s: dict[str, float] = {}
    for part, one in shares:
        more_s[one.normalized] = max(part * alone_s / one.each, more_s.get(one.normalized, 0.0))
    dose = statements_longer(
        more_s, ("each of these statements twice as long", "these statements followed"), 1, _cure(worst)
    )
    dose = replace(dose, metrics=("p50_ms", "rps"))
    return Suspect(min(0.9, 0.5 + share), sentence, (dose,), evidence, loss=share)


def _short(normalized: str) -> str:
    """Return a statement without a long list of columns."""
    return re.sub(r"^(SELECT) .{40,}? (FROM)\b", r"\1 … \2", normalized, flags=re.IGNORECASE)


def _share(watched: Watched, statement: Statement) -> float:
    """Return the share of a request's time that goes into a statement.

    The library that maps objects often computes for longer than the statement runs: of that the stacks tell.
    """
    from_there = sum(
        caller.share for caller in watched.callers.get(MARK, ()) if caller.place == statement.place
    )
    around = watched.shares.get(MARK, 0.0) * from_there
    return min(max(statement.seconds / watched.followed_s, around), 1.0)


def _cure(worst: Statement) -> Cure:
    """Return how to send it once, by what it is."""
    verb = worst.normalized.split(" ", 1)[0].upper()
    if verb == "SELECT":
        what = "read all rows that a request needs with one statement, a join or WHERE … IN (…)"
        after = (
            "selectinload() or joinedload() of SQLAlchemy, and expire_on_commit=False where rows are read again after "
            "a commit; select_related() or prefetch_related() of Django"
        )
    elif verb in ("INSERT", "UPDATE", "DELETE"):
        what = "send all rows that a request writes with one statement"
        after = "executemany(); bulk_create() or bulk_update() of Django; INSERT … VALUES with several rows"
    else:
        what = "send the commands of a request together"
        after = "MGET, or a pipeline"
    return Cure(what, worst.place, worst.text, after)


fault = Fault(
    "n-plus-one",
    "a request sends the same statement many times, once for each row: one statement for all of them",
    ("indexd#160", "jobbergate#465"),
    "A request waits for the same statement again and again.",
    "With each of these statements twice as long, the median or throughput of one request at a time is worse: what "
    "they take is what one statement for all would save, but for its own time.",
    screen,
)
