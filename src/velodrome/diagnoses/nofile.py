"""A limit of open files below the connections that there are: above it nobody is let in."""

from velodrome.diagnoses.fault import Absent, Counting, Fault, Screened, counting
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

RAISED = 65_536
LEAST = 0.5
USUAL, NEAR = 1024, 0.1
"""The limit that systems have unless somebody raises it, and how far below it the wall stands."""


def look(setting: Setting) -> Probe:
    """Open more connections than files may be open, where that can be done."""
    return Probe(
        "wall",
        "the last 64 of more connections than the server may open files",
        "without an answer",
        seconds=4.0,
        worth=0.5,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether connections above the limit are answered."""
    found = counting(
        seen,
        "nofile",
        look(seen.setting),
        LEAST,
        none=Absent(
            "its limit of open files is not among what the clients of one proxy can reach, or not shown"
        ),
    )
    if not isinstance(found, Counting):
        return found
    limit = int(found.met.figures.get("limit", 0))
    cure = Cure(
        "raise the limit of open files above the connections that there may be",
        "where the server is started (systemd: LimitNOFILE=, Docker: --ulimit nofile=)",
        f"ulimit -n {limit}",
        f"ulimit -n {RAISED}",
    )
    raised = Treatment(f"up to {RAISED} open files", {"open-files": RAISED})
    return found.suspect(0.9, found.cured(raised, cure), loss=0.3)


def glance(seen: Symptoms) -> str:
    """Look for requests that fail from about as many in flight as the usual limit of open files."""
    counted = seen.counted
    if counted is None or counted.fails_from is None:
        return ""
    if not (1 - NEAR) * USUAL <= counted.fails_from <= (1 + NEAR) * USUAL:
        return ""
    return (
        f"requests fail from {counted.fails_from} in flight on, about the {USUAL} open files of a usual limit"
    )


fault = Fault(
    "nofile",
    "a wall at some 1,000 connections: the limit of open files; raise it",
    ("uvicorn-worker#22",),
    "Connections are open files, and the process may open no more.",
    "Connections above the limit of open files get no answer; where it is raised in the server's processes, they do.",
    screen,
    look=look,
    glance=glance,
)
