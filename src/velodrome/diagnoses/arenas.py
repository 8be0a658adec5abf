"""Memory that stays after a burst: each thread has an arena of malloc, and each arena keeps its own high-water mark."""

from velodrome.diagnoses.fault import Absent, Counting, Experiment, Fault, Screened, counting
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

LEAST_BYTES = 24e6
"""In further arenas, from which on it is looked into."""
LEAST = 0.2
"""Of the server's own memory."""
STAYS = 0.25
"""Of what the further arenas held, what has to stay: some of it may be in use, and the other arm keeps a little too."""
VARIABLE = "MALLOC_ARENA_MAX"
CONNECTIONS, FEWEST_CONNECTIONS = 64, 16
"""Of a burst; as many as are served at once are enough."""
MOST, FEWEST, ALL_S = 8, 3, 12.0
"""Bursts after which memory is looked at, as many as these seconds are enough for."""


def look(setting: Setting) -> Probe:
    """Count what malloc's further arenas hold after bursts."""
    return Probe(
        "arenas", "at rest, after two bursts of 64 connections", "MB in malloc's further arenas", seconds=1.8
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether arenas hold much at rest."""
    found = counting(
        seen, "arenas", look(seen.setting), LEAST, none=Absent("how much memory it has could not be seen")
    )
    if not isinstance(found, Counting):
        return found
    held = found.met.figures.get("bytes", 0.0)
    if held < LEAST_BYTES:
        return Absent(found.said, found.evidence)
    cure = Cure(
        "one or two arenas for all threads, or another malloc (jemalloc gives memory back)",
        "the server's environment",
        f"{found.met.figures.get('arenas', 0):.0f} arenas hold {held / 1e6:.0f} MB at rest",
        f"{VARIABLE}=1",
    )
    rps = seen.slope.plateau.rps if seen.slope else 0.0
    connections = min(max(seen.setting.slots or CONNECTIONS, FEWEST_CONNECTIONS), CONNECTIONS)
    burst_s = 1.0 + (connections / rps if rps else 0.0)
    bursts = max(min(int(ALL_S / burst_s), MOST), FEWEST)
    probe = Probe(
        "swell",
        f"{bursts} bursts of {connections} connections, with rest after each",
        f"after which {STAYS * held / 1e6:.0f} MB or more stay",
        {"least": STAYS * held, "bursts": bursts, "connections": connections},
        seconds=(bursts + 1) * burst_s,
        worth=0.5,
    )
    fewer = Treatment(f"{VARIABLE}=1", environment={VARIABLE: "1"})
    return found.suspect(0.6, Experiment(fewer, 0, cure, probe=probe), loss=0.2)


fault = Fault(
    "arenas",
    "memory stays after a burst, and no object holds it: malloc's arenas; MALLOC_ARENA_MAX",
    ("authentik#25683",),
    "What threads freed stays in an arena for each, where no other thread can use it.",
    "After bursts much private memory stays, and with one arena hardly any: what objects hold stays in both arms.",
    screen,
    look=look,
)
