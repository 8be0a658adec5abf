"""An answer that is lost because the request's body was not read: the server closes, and the kernel resets."""

from velodrome.diagnoses.fault import (
    Absent,
    Experiment,
    Fault,
    Screened,
    Suspect,
    Unknown,
    counted,
    met,
    said,
)
from velodrome.model.diagnosis import AS_IT_IS, Cure, Probe, Treatment
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
    found = met(seen, "unread-body")
    if isinstance(found, Unknown):
        return found
    evidence = counted(found, probe)
    if found.share < LEAST:
        return Absent(said(found, probe), evidence)
    cure = Cure(
        "read the request to its end before the answer (or leave that to a proxy that buffers requests)",
        "the handler that answers without reading",
        "an answer before the body is read",
        "the body read, or thrown away piece by piece, before the answer",
    )
    read = Treatment("bodies read before the app is called", {"read-body": True})
    cured = Experiment(read, 0, cure, takes="read-body", probe=probe)
    dose = Experiment(AS_IT_IS, 0, cure, proof="dose", probe=probe)
    return Suspect(0.8, said(found, probe), (cured, dose), evidence, loss=found.share)


fault = Fault(
    "unread-body",
    "resets in the place of answers to uploads: the app answers before it has read the body; read it first",
    ("measured here",),
    "The server closes a connection on which there is something unread, which resets it, and the answer is lost.",
    "Connections with a large body are reset, and their answers may be lost; where the body is read first (gunicorn, "
    "uvicorn), or is small, they are not.",
    screen,
    look=look,
)
