"""A limit of connections that idle ones use up: requests are refused or wait although nothing is being done."""

from velodrome.diagnoses.fault import Absent, Counting, Fault, Screened, counting
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

IDLE = 128
"""Connections that proxies hold idle: 32 by each of four workers of nginx."""
KNOBS = ("limit_concurrency", "connections")
"""Settings of stacks that bound the connections of a worker, idle ones as well."""
RAISED = 2048
NEAR = 0.1
"""Share by which requests in flight may be fewer than the limit where some are refused."""
FEWEST = 4
"""Connections that are idle, at least, for these to be why: no limit is as small."""
LEAST = 0.5
"""Share of the requests beside idle connections that have to be late or refused."""


def look(setting: Setting) -> Probe | None:
    """Try some requests beside many idle connections."""
    if not setting.keeps_alive:
        return None
    return Probe(
        "idle",
        f"16 requests beside {IDLE} idle connections",
        "refused or late",
        {"count": IDLE},
        unprovoked={"stay": 0},
        seconds=2.0,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether requests are answered beside idle connections."""
    probe = look(seen.setting)
    if probe is None:
        return Absent("it keeps no idle connections")
    found = counting(seen, "limit-concurrency", probe, LEAST)
    if not isinstance(found, Counting):
        return found
    kept = found.met.figures.get("kept", FEWEST)
    if kept < FEWEST:
        return Absent(f"{found.said}, of which {kept:.0f} could be opened", found.evidence)
    knob = next((one for one in KNOBS if one in seen.setting.knobs), "")
    before = (
        f"--knob {knob}={seen.setting.knobs[knob]}" if knob else "a limit that idle connections count against"
    )
    cure = Cure(
        "raise the limit above the connections that the proxies before it keep open, or have these keep fewer",
        "the server's command line",
        before,
        f"--knob {knob}={RAISED}" if knob else "",
    )
    raised = Treatment(f"{knob} {RAISED}", knobs={knob: RAISED})
    cured = [found.cured(raised, cure)] if knob else []
    return found.suspect(0.8, *cured, found.dose(cure), loss=found.met.share)


def glance(seen: Symptoms) -> str:
    """Look for requests that fail from about as many in flight as the server is set to admit."""
    setting, counted = seen.setting, seen.counted
    knob = next((name for name in KNOBS if setting.knobs.get(name)), "")
    if not knob or counted is None or counted.fails_from is None:
        return ""
    admitted = int(setting.knobs[knob]) * setting.workers
    # Half as many in flight were answered; those that are refused are in flight for no time.
    if not 0.5 * counted.fails_from <= admitted <= (1 + NEAR) * counted.fails_from:
        return ""
    each = f" in each of {setting.workers} workers" if setting.workers > 1 else ""
    return f"requests fail from {counted.fails_from} in flight on, and {knob} is {setting.knobs[knob]}{each}"


fault = Fault(
    "limit-concurrency",
    "503, or no answer, though idle: open connections count against a limit of concurrency; raise it",
    ("uvicorn#3029",),
    "Idle connections use up a limit that is meant for requests.",
    "Beside idle connections requests are refused or late; with a higher limit they are not.",
    screen,
    look=look,
    glance=glance,
)
