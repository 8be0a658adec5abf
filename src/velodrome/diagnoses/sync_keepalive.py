"""A thread held by an idle keep-alive connection: as many idle clients as there are threads stop the server."""

from velodrome.diagnoses.fault import Absent, Counting, Fault, Screened, Unknown, counting
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

LEAST = 0.5
GLANCED = 0.25
"""Share of the connections of a closed loop without an answer, from which on it is named."""
MOST_SLOTS = 64


def look(setting: Setting) -> Probe | None:
    """Try requests beside as many idle connections as there are slots."""
    if not setting.keeps_alive or setting.slots is None or setting.slots > MOST_SLOTS:
        return None
    return Probe(
        "idle",
        f"16 requests beside {setting.slots} idle connection{'s' * (setting.slots > 1)}, one for each slot",
        "late",
        {"count": setting.slots},
        unprovoked={"stay": 0},
        seconds=2.5,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether idle connections hold the slots."""
    probe = look(seen.setting)
    if probe is None:
        if not seen.setting.keeps_alive:
            return Absent("it keeps none idle")
        if seen.setting.slots is None:
            return Absent("its slots are not bound by threads or workers")
        return Unknown(f"of servers with more than {MOST_SLOTS} slots it is not tried")
    found = counting(seen, "sync-keepalive", probe, LEAST)
    if not isinstance(found, Counting):
        return found
    knob = "keepalive" in seen.setting.knobs
    cure = Cure(
        "end connections with the answer, or a server that waits for the next request outside of its threads",
        "the server's settings",
        f"--knob keepalive={seen.setting.knobs['keepalive']}" if knob else "keep-alive",
        "--knob keepalive=0" if knob else "Connection: close",
    )
    none = Treatment("no keep-alive", knobs={"keepalive": 0})
    cured = [found.cured(none, cure)] if knob else []
    return found.suspect(0.8, *cured, found.dose(cure), loss=found.met.share)


def glance(seen: Symptoms) -> str:
    """Look for connections that never got an answer while those that hold a slot got all."""
    counted, slots = seen.counted, seen.setting.slots
    if counted is None or counted.never_in < GLANCED or slots is None or not seen.setting.keeps_alive:
        return ""
    return (
        f"{counted.never_in:.0%} of the connections of a closed loop never got an answer: as many as there are slots "
        f"({slots}) hold them between requests"
    )


fault = Fault(
    "sync-keepalive",
    "a few idle clients stop the server: each idle keep-alive connection holds a thread; end connections instead",
    ("measured here",),
    "A thread waits for the next request of its connection, and does nothing else.",
    "Beside one idle connection a slot requests are late; without keep-alive, or without these, they are not.",
    screen,
    look=look,
    glance=glance,
)
