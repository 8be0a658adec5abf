"""An answer that is lost because the request's body was not read: the server closes, and the kernel resets."""

from velodrome.diagnoses.fault import Absent, Counting, Fault, Screened, counting
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.quantity import significant
from velodrome.model.symptoms import Setting, Symptoms

BODY = 1_000_000
"""Bytes: more than the kernel keeps for a server that does not read."""
LEAST = 0.1


def look(setting: Setting) -> Probe | None:
    """Send a large body where requests have one."""
    if not setting.has_body:
        return None
    return Probe(
        "upload",
        f"16 requests with a body of {BODY // 1_000_000} MB",
        "reset unread",
        {"size": BODY},
        unprovoked={"size": 0},
        seconds=1.0,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether connections are reset because of what was not read."""
    probe = look(seen.setting)
    if probe is None:
        return Absent("no request has a body")
    found = counting(seen, "unread-body", probe, LEAST)
    if not isinstance(found, Counting):
        return found
    cure = Cure(
        "read the request to its end before the answer (or leave that to a proxy that buffers requests)",
        "the handler that answers without reading",
        "an answer before the body is read",
        "the body read, or thrown away piece by piece, before the answer",
    )
    read = Treatment("bodies read before the app is called", {"read-body": True})
    return found.suspect(0.8, found.cured(read, cure), found.dose(cure), loss=found.met.share)


def glance(seen: Symptoms) -> str:
    """Look for connections that were closed with part of a request's body unread."""
    counted = seen.counted
    if counted is None or counted.unread < LEAST or not seen.setting.has_body:
        return ""
    return (
        f"{significant(counted.unread, 2)} connections are closed with part of a body unread for each request"
    )


fault = Fault(
    "unread-body",
    "resets in the place of answers to uploads: the app answers before it has read the body; read it first",
    ("measured here",),
    "The server closes a connection on which there is something unread, which resets it, and the answer is lost.",
    "Connections with a large body are reset, and their answers may be lost; where the body is read first (gunicorn, "
    "uvicorn), or is small, they are not.",
    screen,
    look=look,
    glance=glance,
)
