"""Does the server keep to the protocol where clients only forgive it: heads as they should be, requests read whole?"""

from velodrome.model.measurement import Flag, FlagKind, Severity
from velodrome.run.validity.evidence import Check, Evidence, count

FEW = 0.01
"""Closes per request: fewer are connections that a client gave up."""


def closed_unread(evidence: Evidence) -> Flag | None:
    """Connections that were closed with data unread: the kernel resets them, and what was sent may be lost."""
    closed, requests = evidence.sampled.host.closed_unread or 0, max(evidence.facts.requests, 1)
    if closed <= FEW * requests:
        return None
    reset = evidence.facts.outcomes.get("reset", 0)
    lost = (
        f"{count(reset)} of {count(requests)} requests failed by that"
        if reset
        else "no answer was lost by that"
    )
    return Flag(
        FlagKind.CLOSED_UNREAD,
        Severity.NOTE,
        f"{count(closed)} connections were closed with part of a request unread, which resets them: {lost}.",
        "Have the server read a request whole before it answers and closes (RFC 9112, section 9.6).",
        {"closed_unread": closed, "reset": reset},
    )


def length_not_told(evidence: Evidence) -> Flag | None:
    """Answers that only the end of the connection ends."""
    if evidence.form is None or evidence.form.length_told:
        return None
    return Flag(
        FlagKind.LENGTH_NOT_TOLD,
        Severity.NOTE,
        "Its answers tell neither a length nor chunks: each costs a connection, and one that is cut off looks whole.",
        "Send a Content-Length (RFC 9112, section 6.3).",
    )


def bare_line_ends(evidence: Evidence) -> Flag | None:
    """Heads whose lines end in LF alone."""
    if evidence.form is None or evidence.form.line_ends == "CRLF":
        return None
    return Flag(
        FlagKind.BARE_LINE_ENDS,
        Severity.NOTE,
        "Lines of its heads end in LF without CR: clients may read over that (RFC 9112, section 2.2), and some do not.",
        "End every line of a head in CRLF.",
    )


CHECKS: tuple[Check, ...] = (closed_unread, length_not_told, bare_line_ends)
