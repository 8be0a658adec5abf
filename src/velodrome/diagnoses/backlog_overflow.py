"""A listen queue shorter than a burst: who finds it full is turned away, or tries again after a second."""

from velodrome.diagnoses.fault import Absent, Counting, Fault, Screened, counting
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

BURST, CALM, CALMS = 256, 8, 8
"""Connections at once; otherwise; how often those are repeated, as a queue may fill only now and then."""
LEAST = 0.05
GLANCED = 8
"""Connections turned away, from which on it is named."""
RAISED = 2048


def look(setting: Setting) -> Probe:
    """Try a burst of connections."""
    return Probe(
        "burst",
        f"{BURST} connections at once",
        "turned away or late by a second",
        {"count": BURST},
        unprovoked={"count": CALM, "times": CALMS},
        seconds=3.0,
        worth=0.1,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether a burst is taken in."""
    probe = look(seen.setting)
    found = counting(seen, "backlog-overflow", probe, LEAST)
    if not isinstance(found, Counting):
        return found
    # A server that is only slow answers a burst late as well.
    if not found.met.figures.get("overflows", 1.0):
        return Absent(found.said, found.evidence)
    knob = "backlog" in seen.setting.knobs
    cure = Cure(
        "a longer listen queue (`net.core.somaxconn` bounds it), and workers that accept while they work",
        "the server's command line",
        f"--knob backlog={seen.setting.knobs['backlog']}" if knob else "",
        f"--knob backlog={RAISED}" if knob else "",
    )
    longer = Treatment(f"a backlog of {RAISED}", knobs={"backlog": RAISED})
    cured = [found.cured(longer, cure)] if knob else []
    return found.suspect(0.8, *cured, found.dose(cure), loss=found.met.share)


def glance(seen: Symptoms) -> str:
    """Look for connections that were turned away though no more came than a closed loop has."""
    counted = seen.counted
    if counted is None or (counted.overflows or 0) < GLANCED:
        return ""
    return f"a full listen queue turned away {counted.overflows} connections of closed loops"


fault = Fault(
    "backlog-overflow",
    "some of a burst wait a second, or are reset, and no metric of the server shows it: a longer listen queue",
    ("measured here",),
    "A burst of connections finds the listen queue full.",
    "Of a burst some are turned away or late by a second; with a longer queue none are.",
    screen,
    look=look,
    glance=glance,
)
