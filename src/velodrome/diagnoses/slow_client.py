"""A client that sends slowly holds a worker that can do nothing else: others wait for it."""

from velodrome.diagnoses.fault import Counting, Fault, Screened, counting
from velodrome.model.diagnosis import Cure, Probe, Treatment
from velodrome.model.symptoms import Setting, Symptoms

LEAST = 0.5
MOST_CLIENTS = 16
ELSEWHERE = {
    "gunicorn-sync": "gunicorn-gthread",
    "flask-gunicorn-sync": "flask-gunicorn-gthread",
    "django-gunicorn-sync": "",
}
"""Stacks of the same server with threads, by those without."""


def look(setting: Setting) -> Probe | None:
    """Try some requests beside a slow client for each worker."""
    clients = min(max(setting.workers, 1), MOST_CLIENTS)
    return Probe(
        "slow",
        f"16 requests while {clients} other{'s' * (clients > 1)} send{'s' * (clients == 1)} a head byte by byte",
        "late",
        {"clients": clients},
        unprovoked={"clients": 0},
        seconds=2.0,
    )


def screen(seen: Symptoms) -> Screened:
    """Look whether requests are answered beside slow clients."""
    probe = look(seen.setting)
    assert probe is not None
    found = counting(seen, "slow-client", probe, LEAST)
    if not isinstance(found, Counting):
        return found
    other = ELSEWHERE.get(seen.setting.stack, "")
    cure = Cure(
        "a proxy that reads whole requests before it passes them on (nginx does), or workers with threads or a loop",
        "the server's command line",
        seen.setting.stack,
        f"--stack {other}" if other else "",
    )
    threads = Treatment(f"on {other}", stack=other)
    cured = [found.cured(threads, cure)] if other else []
    return found.suspect(0.8, *cured, found.dose(cure), loss=found.met.share)


fault = Fault(
    "slow-client",
    "a slow client holds a sync worker, and the others wait: a proxy that buffers, or threads",
    ("gunicorn#3259",),
    "A worker that reads a request can do nothing else until it is there.",
    "Beside one slow client a worker others are late; on the same server with threads, or without slow clients, they "
    "are not.",
    screen,
    look=look,
    elsewhere={name: other for name, other in ELSEWHERE.items() if other},
)
