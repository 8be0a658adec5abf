"""Work that goes on after its client has left: for nobody, and others wait for it."""

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

LEAST = 0.25
"""Share of the work of requests that is done after their clients have left, from which on it is looked into."""


def look(setting: Setting) -> Probe:
    """Have clients leave a third into their requests."""
    return Probe(
        "leave",
        "16 requests whose clients leave a third into them",
        "worked on for nobody",
        {"leaves": 1},
        unprovoked={"leaves": 0},
        seconds=2.6,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether work goes on."""
    probe = look(seen.setting)
    found = met(seen, "no-cancel")
    if isinstance(found, Unknown):
        return found
    if not found.of:
        return Absent(
            "requests are too short, or too little is done for them, for clients to leave in the middle"
        )
    evidence = counted(found, probe)
    if found.share < LEAST:
        return Absent(said(found, probe), evidence)
    cure = Cure(
        "stop when the client has left: cancel the task when `receive()` gives `http.disconnect` (in Starlette "
        "`await request.is_disconnected()`), or ask that between the steps of long work",
        "the handler",
        "work to the end, whoever is still there",
        "cancelled at the next `await`",
    )
    cancelled = Treatment("the call cancelled when its client has left", {"cancelled": True})
    return Suspect(
        0.6,
        said(found, probe),
        (
            Experiment(cancelled, 0, cure, takes="cancelled", probe=probe),
            Experiment(AS_IT_IS, 0, cure, proof="dose", probe=probe),
        ),
        evidence,
        loss=0.3 * found.share,
    )


fault = Fault(
    "no-cancel",
    "busy after the clients have left: work goes on for nobody, and a retry doubles it; cancel it",
    ("ray#21438",),
    "Nobody looks whether the client is still there.",
    "After clients left, third parties are called and CPU is used; where the call is cancelled then (uvicorn), much "
    "less.",
    screen,
    look=look,
)
