"""Connections that have expired when all clients need them at once: others are opened, and the queue overflows."""

from velodrome.diagnoses.fault import Absent, Counting, Fault, Screened, Unknown, counting
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

CLIENTS = 256
LONGEST_S = 10.0
"""What a server keeps longer is not waited for."""
MORE_S = 0.5
LEAST = 0.05
CURED_S, RAISED = 75, 2048


def look(setting: Setting) -> Probe | None:
    """Have clients come back after idle connections have expired, while the server stalls."""
    kept_s = setting.keeps_idle_s
    if not setting.keeps_alive or kept_s is None or kept_s > LONGEST_S:
        return None
    return Probe(
        "storm",
        f"{CLIENTS} clients, idle for {kept_s + MORE_S:g} s, that all send while the server stalls for 0.3 s",
        "turned away or late by a second",
        {"clients": CLIENTS, "idle_s": kept_s + MORE_S},
        unprovoked={"idle_s": 0.0},
        seconds=kept_s + 3.0,
        worth=0.1,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether clients that come back are taken in."""
    setting = seen.setting
    if not setting.keeps_alive:
        return Absent("it ends each connection with the answer: clients open one for each request anyway")
    if setting.keeps_idle_s is None:
        return Unknown("how long this server keeps idle connections is not known")
    probe = look(setting)
    if probe is None:
        return Absent(
            f"idle connections are kept for {setting.keeps_idle_s:g} s: a short stall ends none of them"
        )
    found = counting(seen, "reconnect-storm", probe, LEAST)
    if not isinstance(found, Counting):
        return found
    # A server that answers slowly what it has taken is late as well.
    if not found.met.figures.get("overflows", 1.0):
        return Absent(found.said, found.evidence)
    kept, backlog = "keepalive" in setting.knobs, "backlog" in setting.knobs
    cure = Cure(
        "keep idle connections for longer than clients are idle, so that they need not open all at once; and a listen "
        "queue as long as there are clients",
        "the server's command line",
        f"keep-alive {setting.keeps_idle_s:g} s",
        f"--knob keepalive={CURED_S}" if kept else f"--knob backlog={RAISED}" if backlog else "",
    )
    longer = Treatment(f"keep-alive of {CURED_S} s", knobs={"keepalive": CURED_S})
    queue = Treatment(f"a backlog of {RAISED}", knobs={"backlog": RAISED})
    cured = [found.cured(longer, cure)] if kept else [found.cured(queue, cure)] if backlog else []
    return found.suspect(0.7, *cured, found.dose(cure), loss=found.met.share)


fault = Fault(
    "reconnect-storm",
    "after a stall most are turned away: idle connections had expired, and all clients open others; keep them longer",
    ("SkyRL#2163",),
    "Clients find their idle connections ended, open others at the same moment, and the listen queue is full.",
    "Clients that were idle for longer than connections are kept are turned away or late; where these are kept, or "
    "there is room in the queue, none is.",
    screen,
    look=look,
)
